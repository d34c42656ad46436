// Mixed traffic at a constant rate of arrivals: k6 sends on time, whatever has come back by then.
// Each arrival is one row of a plan that was made in advance (mixed.py), and is used once.
import http from "k6/http";
import { SharedArray } from "k6/data";
import { scenario } from "k6/execution";
import { Rate } from "k6/metrics";

const run = JSON.parse(__ENV.MIXED);
const plan = new SharedArray("plan", () => JSON.parse(open(run.plan)));
const headers = {
  "Content-Type": "application/json",
  Authorization: `Bearer ${__ENV.MIXED_KEY}`,
};
const personalised = new Rate("personalised");

// k6 exports a metric by its tags only where a threshold names it. These are always kept.
function submetrics() {
  const named = {};
  for (const family of run.families) {
    named[`personalised{family:${family}}`] = ["rate>=0"];
    for (const path of ["recommend", "feedback"]) {
      const tags = `family:${family},path:${path}`;
      named[`http_req_duration{${tags}}`] = ["max>=0"];
      named[`http_reqs{${tags}}`] = ["count>=0"];
      for (const status of run.statuses) {
        named[`http_reqs{${tags},status:${status}}`] = ["count>=0"];
      }
    }
  }
  return named;
}

export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ["med", "p(99)", "max"],
  thresholds: submetrics(),
  scenarios: {
    mixed: {
      executor: "constant-arrival-rate",
      rate: run.rate,
      timeUnit: "1s",
      duration: `${run.seconds}s`,
      preAllocatedVUs: 64,
      maxVUs: 256,
    },
  },
};

function post(family, path, body, responseType) {
  const tags = { family, path };
  return http.post(`${run.url}/${path}`, body, { headers, tags, responseType });
}

export default function () {
  const { family, body, likes } = plan[scenario.iterationInTest % plan.length];
  const reply = post(family, "recommend", body, "text");
  if (reply.status !== 200) return;
  const answer = JSON.parse(reply.body);
  personalised.add(answer.personalised, { family });
  if (likes === null || answer.items.length === 0) return;
  const id = answer.items[0].id;
  const reward = likes.includes(id[id.length - 1]) ? 1 : 0;
  const feedback = JSON.stringify({ recommendation_id: answer.recommendation_id, reward });
  post(family, "feedback", feedback, "none");
}
