"""Clients that we did not write, as they come: curl that wants HTTP/2, Java's, Node's.

curl and Java wish for another protocol with their first request (`Upgrade: h2c`). The wish is
ignored; the request, with its body, is answered as it stands.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.servers import Server
from tests.requirements import need

SECONDS = 120
QUESTION = {"recommender": "films", "client": "foreign", "context": [0.25, 0.75]}

JAVA = """
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.stream.*;

public class Ask {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        var request = HttpRequest.newBuilder(URI.create(args[0]))
            .header("Authorization", "Bearer " + args[1])
            .POST(BodyPublishers.ofString(args[2])).build();
        for (int i = 0; i < 3; i++) {
            var answer = client.send(request, BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.version());
        }
        var many = IntStream.range(0, 20).mapToObj(i ->
            client.sendAsync(request, BodyHandlers.ofString())).collect(Collectors.toList());
        for (var one : many) System.out.println(one.get().statusCode());
    }
}
"""

NODE = """
const [url, key, body] = process.argv.slice(2);
const ask = () => fetch(url, {method: "POST", body, headers: {authorization: "Bearer " + key}});
const main = async () => {
  for (let i = 0; i < 3; i++) {
    const answer = await ask();
    console.log(answer.status);
    await answer.json();
  }
  for (const one of await Promise.all(Array.from({length: 20}, ask))) {
    console.log(one.status);
    await one.json();
  }
};
main();
"""


@pytest.fixture(scope="module", autouse=True)
def films(server: Server) -> None:
    server.put("films")


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=SECONDS)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs("curl")
@pytest.mark.parametrize(
    "options",
    [
        ("--http2",),
        ("--http1.1",),
        ("--http1.0",),
        ("--http1.1", "-H", "Transfer-Encoding: chunked"),
        ("--http1.1", "-H", "Expect: 100-continue"),
    ],
    ids=" ".join,
)
def test_curl(server: Server, options: tuple[str, ...]) -> None:
    shown = run(
        need("curl"), "-sS", *options, "-w", "\n%{http_code} %{http_version}\n",
        "-H", f"Authorization: Bearer {server.key}", "-d", json.dumps(QUESTION),
        f"{server.url}/recommend", "--next", "-sS", *options, "-w", "\n%{http_code}",
        "-H", f"Authorization: Bearer {server.key}", "-d", json.dumps(QUESTION),
        f"{server.url}/recommend",
    )  # fmt: skip
    body, first, rest = shown.split("\n", 2)
    assert json.loads(body)["items"]
    assert first == "200 1.1"
    assert rest.splitlines()[-1] == "200"


@pytest.mark.needs("javac")
def test_javas_own_client(server: Server, tmp_path: Path) -> None:
    source = tmp_path / "Ask.java"
    source.write_text(JAVA)
    java = need("javac").parent / "java"
    shown = run(java, source, f"{server.url}/recommend", server.key, json.dumps(QUESTION))
    assert shown.split("\n")[:3] == ["200 HTTP_1_1"] * 3
    assert shown.split()[6:] == ["200"] * 20


@pytest.mark.needs("node")
def test_node(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "ask.js"
    script.write_text(NODE)
    shown = run(need("node"), script, f"{server.url}/recommend", server.key, json.dumps(QUESTION))
    assert shown.split() == ["200"] * 23
