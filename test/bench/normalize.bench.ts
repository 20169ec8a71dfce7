/**
 * Measures the CPU work on the body of a delivery.
 *
 * - Compares each optimization of the normalizer with the plain way, in alternating rounds.
 * - Measures the time that a simple `when` adds to a delivery.
 * - Measures the time that an intake takes to route an item, compared with splitting the same delivery into items.
 * - Measures how long the event loop is blocked while GitHub's schemas are compiled and values are checked against their union.
 *
 * All times are CPU time, because other processes add to the wall time. A stall is the CPU time between two iterations of the event loop.
 * Prints by how much a goal is missed, and then fails.
 *
 * usage: npm run bench:normalize [-- --rounds 5 --schemas 1000]
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { compile } from "json-p3";
import type { Definition } from "../../src/event/definition.ts";
import { parseJson } from "../../src/event/parse-json.ts";
import { createValidatorFor } from "../../src/ingest/validators.ts";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { buildTargets } from "../../src/normalize/body/json-scan.ts";
import { JsonText } from "../../src/normalize/body/payload-slice.ts";
import { DELIVERY_PATH_BUDGET, normalize, readItems } from "../../src/normalize/normalize.ts";
import { createSingularPath } from "../../src/normalize/paths/path.ts";
import { routeItems } from "../../src/normalize/route-items.ts";
import { compileRoutes } from "../../src/normalize/routes.ts";
import { EVENT_NAMES, eventSchema, examples, unionSchema } from "../lib/json-schema/github.ts";
import { deliveryOf, rulesOf } from "../normalize/support.ts";
import { until } from "../support/until.ts";
import { median } from "./cpu.ts";
import { readFlags } from "./flags.ts";
import { createGoals } from "./rounds.ts";

const { rounds, schemas: mostSchemas } = readFlags({ rounds: 5, schemas: 1_000 });
const ROUND_MS = 150;
const UNION_EXAMPLES = 20;
const GOAL_STALL_MS = 50;
const GOAL_WHEN_MICROS = 1;
const GOAL_ROUTE_MICROS = 5;
const CALLER = { lane: "a" };

const goals = createGoals();
compareWays();
await measureWhen();
measureRouting();
await measureSchemas();
goals.tell();

function compareWays(): void {
  const pullRequest = examples().find(({ event }) => event === "pull_request_event")?.payload;
  const text = JSON.stringify(pullRequest);
  const json = JsonText.parse(text);
  const small = JSON.stringify({ id: "x1", type: "t500", data: { text: "x".repeat(420) } });
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };

  const definition = (type: string): Definition => ({ type, typePath: "$.type", idPath: "$.id" });
  const one = rulesOf([definition("t500")]);
  const thousand = rulesOf(Array.from({ length: 1_000 }, (_, index) => definition(`t${index}`)));
  const delivery = deliveryOf(small, { headers: { "content-type": "application/json" } });
  compare(
    "1,000 definitions against 1",
    { label: "1,000", run: () => normalize(thousand, delivery, deps) },
    { label: "1", run: () => normalize(one, delivery, deps) },
  );

  const path = createSingularPath(["pull_request", "head", "repo", "id"]);
  const compiled = compile("$.pull_request.head.repo.id");
  compare(
    "accessor against json-p3",
    { label: "accessor", run: () => path.get(json.value) },
    { label: "json-p3", run: () => compiled.query(pullRequest as Parameters<typeof compiled.query>[0]) },
  );

  for (const name of ["pull_request", "sender"]) {
    const target = buildTargets([[name]]);
    const value = (json.value as Readonly<Record<string, unknown>>)[name];
    compare(
      `slice of ${name} against stringify`,
      { label: "slice", run: () => json.find(target, value)?.text },
      { label: "stringify", run: () => JSON.stringify(value) },
    );
  }

  const texts = {
    small,
    "pull request": text,
    "pull request in a string": JSON.stringify({ Message: text }),
    "text with an escaped name": `{"\\u0061":1,${text.slice(1)}`,
  };
  for (const [name, each] of Object.entries(texts)) {
    compare(
      `parseJson of a ${name} against JSON.parse`,
      { label: "parseJson", run: () => parseJson(each) },
      { label: "JSON.parse", run: () => JSON.parse(each) },
    );
  }

  const rules = rulesOf([{ type: "any", idPath: "$headers['x-id']" }]);
  for (const body of [small, text]) {
    const whole = deliveryOf(body, { headers: { "x-id": "abc" } });
    compare(
      `a body of ${body.length} B against JSON.parse`,
      { label: "normalize", run: () => normalize(rules, whole, deps) },
      { label: "JSON.parse", run: () => JSON.parse(whole.body.toString()) },
    );
  }
}

interface Way {
  readonly label: string;
  readonly run: () => unknown;
}

/** Measures the additional time of a delivery whose definition has a `when` that matches. */
async function measureWhen(): Promise<void> {
  await using compiler = startSchemaCompiler();
  const { signal } = new AbortController();
  const when = {
    type: "object",
    required: ["item"],
    properties: { item: { required: ["action"], properties: { action: { const: "opened" } } } },
  };
  await compiler.compile(when, { signal, ...CALLER });
  const deps = { validatorFor: createValidatorFor(compiler), newEventId: () => "fresh" };
  const delivery = deliveryOf({ id: "x1", action: "opened", text: "x".repeat(420) });
  const [filtered, plain] = [
    rulesOf([{ type: "e", idPath: "$.id", when }]),
    rulesOf([{ type: "e", idPath: "$.id" }]),
  ];
  const { ourMicros, plainMicros } = compare(
    "a delivery with a simple `when`",
    { label: "with", run: () => normalize(filtered, delivery, deps) },
    { label: "without", run: () => normalize(plain, delivery, deps) },
  );
  goals.check("time that a simple `when` adds, µs", ourMicros - plainMicros, GOAL_WHEN_MICROS, "most");
}

/** Measures the additional time per item of a delivery of 100 items, which have 1, 10 or 100 route keys. */
function measureRouting(): void {
  const rules = rulesOf([], { itemsPath: "$.events" });
  const paths = compileRoutes(rules.profile, rules.config, ["$.authorizations[0].team", "$.team"]);
  if (!paths.ok) throw new Error("the paths of the benchmark do not compile");
  for (const keys of [1, 10, 100]) {
    const items = Array.from({ length: 100 }, (_, n) => ({
      id: n,
      team: `T${n % keys}`,
      text: "x".repeat(100),
    }));
    const delivery = deliveryOf({ events: items });
    const { ourMicros, plainMicros } = compare(
      `100 items with ${keys} route keys`,
      { label: "routed", run: () => routeItems(rules, paths.value, delivery) },
      { label: "split", run: () => readItems(rules, delivery, { left: DELIVERY_PATH_BUDGET }, false) },
    );
    goals.check(
      `time per item to route ${keys} keys, µs`,
      (ourMicros - plainMicros) / items.length,
      GOAL_ROUTE_MICROS,
      "most",
    );
  }
}

/** Prints and returns the medians of the rounds after a warm-up round. Also prints the ratio of the plain time to Inlet's. */
function compare(
  name: string,
  ours: Way,
  plain: Way,
): { readonly ourMicros: number; readonly plainMicros: number } {
  const measured = Array.from(
    { length: rounds + 1 },
    () => [microsPerCall(ours.run), microsPerCall(plain.run)] as const,
  ).slice(1);
  const [ourMicros, plainMicros] = [
    median(measured.map(([micros]) => micros)),
    median(measured.map(([, micros]) => micros)),
  ];
  print(
    `${name.padEnd(40)} ${ours.label} ${ourMicros.toFixed(3)} µs, ${plain.label} ${plainMicros.toFixed(3)} µs, ratio ${(plainMicros / ourMicros).toPrecision(3)}`,
  );
  return { ourMicros, plainMicros };
}

/** Returns the CPU time of a call, because other processes add to the wall time. */
function microsPerCall(run: () => unknown): number {
  const startedMs = performance.now();
  const before = process.threadCpuUsage();
  let calls = 0;
  for (; performance.now() - startedMs < ROUND_MS; calls += 16) for (let i = 0; i < 16; i++) run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / calls;
}

async function measureSchemas(): Promise<void> {
  const { signal } = new AbortController();
  const schemas = EVENT_NAMES.slice(0, mostSchemas).map(eventSchema);
  await measureStall("a stall of 80 ms, as proof", () => {
    for (const end = performance.now() + 80; performance.now() < end; );
  });
  for (const way of ["one after the other", "all at once"]) {
    await using compiler = startSchemaCompiler();
    const compileOne = (schema: Record<string, unknown>) => compiler.compile(schema, { signal, ...CALLER });
    const stallMs = await measureStall(`${schemas.length} schemas, ${way}`, async () => {
      if (way === "all at once") await Promise.all(schemas.map(compileOne));
      else for (const schema of schemas) await compileOne(schema);
    });
    goals.check(`stall while schemas are compiled ${way}, ms`, stallMs, GOAL_STALL_MS, "most");
  }
  await using compiler = startSchemaCompiler({ maxCheckCpuMs: 20_000 });
  const schema = unionSchema();
  const stallMs = await measureStall(`the union, ${UNION_EXAMPLES} examples`, async () => {
    const compiled = await compiler.compile(schema, { signal, ...CALLER });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    for (const { payload } of examples().slice(0, UNION_EXAMPLES))
      await compiled.value.validate(payload, CALLER);
  });
  goals.check("stall while the union is used, ms", stallMs, GOAL_STALL_MS, "most");
}

/** Returns the maximum CPU time of this thread between two iterations of the event loop during some work, in ms. */
async function measureStall(name: string, work: () => unknown): Promise<number> {
  const stalls = monitorEventLoopDelay({ resolution: 1 });
  stalls.enable();
  // The histogram starts at its first tick, and counts a delay at the tick that ends it.
  await until(() => stalls.count > 0, { everyMs: 1 });
  let cpuMs = 0;
  let last = process.threadCpuUsage();
  const sampler = setInterval(() => {
    const now = process.threadCpuUsage();
    cpuMs = Math.max(cpuMs, (now.user + now.system - last.user - last.system) / 1_000);
    last = now;
  }, 1);
  const startedMs = performance.now();
  await work();
  const tookMs = performance.now() - startedMs;
  const ticks = stalls.count;
  await until(() => stalls.count > ticks, { everyMs: 1 });
  clearInterval(sampler);
  stalls.disable();
  print(
    `${name.padEnd(40)} ${tookMs.toFixed(0)} ms, longest stall ${(stalls.max / 1e6).toFixed(1)} ms, ${cpuMs.toFixed(1)} ms of CPU time`,
  );
  return cpuMs;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
