import type { Normalizer } from "../ingest/normalizer.ts";
import { type Asker, createWorkerQueue } from "../lib/worker-queue.ts";
import type { RuleSet } from "../normalize/compile.ts";
import { invalidBody } from "../normalize/fault.ts";
import { abandonedAfter, failed, type NormalizeDeps, normalize } from "../normalize/normalize.ts";
import type { NormalizeAnswer, NormalizeRequest, SentRules } from "./normalize-worker.ts";

/** Of one delivery: less than its sender waits, so that one that takes more is quarantined instead of sent again for ever. */
const MAX_CPU_MS = 3_000;
/** Their bodies wait in memory. */
const MAX_QUEUED_PER_LANE = 100;
const MAX_HEAP_MIB = 1_024;

/** Normalizes in a thread of its own, in which organizations take turns. What comes back is text: nothing is parsed again here. */
export function startNormalizeElsewhere(deps: NormalizeDeps): AsyncDisposable & { readonly run: Normalizer } {
  const queue = createWorkerQueue<NormalizeRequest, NormalizeAnswer>({
    program: new URL("./normalize-worker.ts", import.meta.url),
    name: "large deliveries",
    maxCpuMs: MAX_CPU_MS,
    maxQueuedPerLane: MAX_QUEUED_PER_LANE,
    maxHeapMiB: MAX_HEAP_MIB,
  });
  const ids = new WeakMap<RuleSet, number>();
  let lastId = 0;

  function idOf(rules: RuleSet): number {
    const known = ids.get(rules) ?? ++lastId;
    ids.set(rules, known);
    return known;
  }

  /** The code of its schemas, compiled where they are not yet. */
  async function sentRulesOf(rules: RuleSet): Promise<SentRules> {
    const { channel, config, definitions, topics, forms } = rules;
    const generated: SentRules["generated"][number][] = [];
    for (const { schema } of definitions) {
      const compiled =
        schema === undefined ? undefined : await deps.validatorFor(schema, channel.organizationId);
      generated.push(compiled?.generated);
    }
    return { channel, config, definitions, topics, forms, generated };
  }

  async function normalizeElsewhere(
    asker: Asker,
    ...[rules, delivery, only]: Parameters<Normalizer>
  ): Promise<Awaited<ReturnType<Normalizer>>> {
    const request = { rulesId: idOf(rules), delivery, only };
    const first = await queue.run(request, asker);
    const answer =
      first.kind === "missing"
        ? await queue.run({ ...request, rules: await sentRulesOf(rules) }, asker)
        : first;
    switch (answer.kind) {
      case "done":
        return answer.normalized;
      case "exceeded":
        return failed(invalidBody("the delivery takes too much time or memory to be read"), only);
      case "unknownKind":
        return normalize(rules, delivery, deps, only);
      case "missing":
        throw new Error("the worker did not take the rules that it was sent");
      default:
        return answer satisfies never;
    }
  }

  return {
    run(rules, delivery, only, maxWaitMs) {
      const asker = { lane: rules.channel.organizationId, isGone: false };
      const work = normalizeElsewhere(asker, rules, delivery, only);
      return maxWaitMs === undefined ? work : abandonedAfter(maxWaitMs, work, asker);
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}
