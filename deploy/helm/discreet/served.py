"""What `helm test` runs inside the cluster: ready, closed to strangers, serving what it should."""

import json
import os
import urllib.error
import urllib.request

URL = os.environ["URL"]
WANTED = set(os.environ["RECOMMENDERS"].split())
with open(os.environ["KEY_FILE"], encoding="utf-8") as file:
    KEY = file.read().strip()


def get(path, key=None):
    """Return the status and the body."""
    headers = {"Authorization": "Bearer " + key} if key else {}
    request = urllib.request.Request(URL + path, headers=headers)  # noqa: S310 - the chart's own URL
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


status, _ = get("/health/ready")
assert status == 200, f"/health/ready answers {status}: is the store up?"
status, _ = get("/recommenders")
assert status == 401, f"/recommenders answers {status} without a key, and should 401"
status, body = get("/recommenders", KEY)
assert status == 200, f"/recommenders answers {status}: is the key in the Secret the pods' key?"
missing = WANTED - set(json.loads(body)["recommenders"])
assert not missing, f"the values name recommenders that are not served: {sorted(missing)}"
status, body = get("/metrics", KEY)
assert status == 200, f"/metrics answers {status}"
assert "discreet_build_info" in body, "/metrics has no series of Discreet's"
print("served:", ", ".join(sorted(WANTED)) or "no recommenders in the values", "- all is well")
