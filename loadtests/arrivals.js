// A constant rate of arrivals: k6 sends on time, whatever has come back by then. Without a rate,
// so many connections ask again as soon as they were answered.
import http from "k6/http";
import { SharedArray } from "k6/data";
import { scenario } from "k6/execution";

const bodies = new SharedArray("bodies", () => JSON.parse(open(__ENV.BENCH_BODIES)));
const headers = {
  "Content-Type": "application/json",
  Authorization: `Bearer ${__ENV.BENCH_KEY}`,
};

export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ["med", "p(90)", "p(99)", "max"],
  scenarios: {
    load: __ENV.BENCH_RATE
      ? {
          executor: "constant-arrival-rate",
          rate: Number(__ENV.BENCH_RATE),
          timeUnit: "1s",
          duration: `${__ENV.BENCH_SECONDS}s`,
          preAllocatedVUs: 64,
          maxVUs: 256,
        }
      : {
          executor: "constant-vus",
          vus: Number(__ENV.BENCH_CONNECTIONS),
          duration: `${__ENV.BENCH_SECONDS}s`,
        },
  },
};

export default function () {
  http.post(__ENV.BENCH_URL, bodies[scenario.iterationInTest % bodies.length], { headers });
}
