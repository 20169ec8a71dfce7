import { Counter, Histogram, Registry } from "prom-client";
import { expect, it } from "vitest";
import { createTimings } from "../../src/metrics/frequent-metrics.ts";
import { renderOpenMetrics } from "../../src/metrics/open-metrics.ts";

it("a timing histogram exports exactly the same text as a prom-client histogram with the same values", async () => {
  const config = { name: "inlet_test_seconds", help: "For the test", buckets: [0.001, 0.01, 0.1] };
  const ours = new Registry();
  const theirs = new Registry();
  const timings = createTimings({ ...config, label: "outcome", registers: [ours] });
  const histogram = new Histogram({ ...config, labelNames: ["outcome"], registers: [theirs] });
  const values = [0, 0.001, 0.0011, 0.01, 0.05, 0.1, 0.3, 7];
  for (const [i, value] of values.entries()) {
    const outcome = i % 3 === 0 ? "refused" : "ok";
    timings.observe(value, outcome);
    histogram.observe({ outcome }, value);
  }
  const lines = async (registry: Registry) =>
    (await registry.metrics())
      .trim()
      .split("\n")
      // The order of labels is irrelevant.
      .map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(",").sort().join()}}`))
      .sort();
  expect(await lines(ours)).toEqual(await lines(theirs));
});

it("a timing histogram keeps the newest exemplar of each bucket, which only OpenMetrics shows", async () => {
  const registry = new Registry();
  const config = { name: "inlet_test_seconds", help: 'A "test"', buckets: [1, 2.5] };
  const timings = createTimings({ ...config, label: "outcome", registers: [registry] });
  const calls = new Counter({ name: "inlet_test_total", help: "Calls", registers: [registry] });
  timings.observe(0.5, "ok", "a".repeat(32));
  timings.observe(0.6, "ok", "b".repeat(32));
  timings.observe(0.7, "ok");
  timings.observe(9, "ok", "c".repeat(32));
  calls.inc(3);
  const lines = renderOpenMetrics(await registry.getMetricsAsJSON()).split("\n");
  const atSeconds = "\\d+(\\.\\d+)?$";
  expect(lines).toEqual([
    '# HELP inlet_test_seconds A \\"test\\"',
    "# TYPE inlet_test_seconds histogram",
    expect.stringMatching(`le="1.0"} 3 # {trace_id="b{32}"} 0.6 ${atSeconds}`),
    'inlet_test_seconds_bucket{outcome="ok",le="2.5"} 3',
    expect.stringMatching(`le="\\+Inf"} 4 # {trace_id="c{32}"} 9 ${atSeconds}`),
    'inlet_test_seconds_sum{outcome="ok"} 10.8',
    'inlet_test_seconds_count{outcome="ok"} 4',
    "# HELP inlet_test Calls",
    "# TYPE inlet_test counter",
    "inlet_test_total 3",
    "# EOF",
    "",
  ]);
  const text = await registry.metrics();
  expect(text).not.toContain(" # ");
  expect(text).toContain("# TYPE inlet_test_total counter");
});

it("a timing histogram without a label exports a single series", async () => {
  const registry = new Registry();
  const timings = createTimings({
    name: "inlet_test_seconds",
    help: "x",
    buckets: [1],
    registers: [registry],
  });
  timings.observe(0.5);
  timings.observe(2);
  const text = await registry.metrics();
  expect(text).toContain('inlet_test_seconds_bucket{le="1"} 1');
  expect(text).toContain('inlet_test_seconds_bucket{le="+Inf"} 2');
  expect(text).toContain("inlet_test_seconds_count 2");
});
