import { type CheckResult, type HealthReport, toHealthReport } from "../http/health.ts";

/** Returns the worse of two results of the same check. */
function worseOf(a: CheckResult, b: CheckResult): CheckResult {
  const badness = (result: CheckResult): number => (result.ok ? (result.warnings?.length ? 1 : 0) : 2);
  return badness(b) > badness(a) ? b : a;
}

/**
 * Combines the reports of all ready processes. The machine is ready if each process that gets connections is ready. Processes that are still
 * starting do not count, because they get none.
 *
 * @param reports `undefined` for a process that did not respond in time
 * @param recentlyEnded number of processes that ended without being stopped in the last ten minutes
 */
export function combineHealth(
  reports: readonly (HealthReport | undefined)[],
  { processes, recentlyEnded }: { readonly processes: number; readonly recentlyEnded: number },
): HealthReport {
  const checks: Record<string, CheckResult> = {};
  for (const report of reports)
    for (const [name, result] of Object.entries(report?.checks ?? {})) {
      const known = checks[name];
      checks[name] = known === undefined ? result : addShards(worseOf(known, result), known, result);
    }
  const silent = reports.filter((report) => report === undefined).length;
  const ready = reports.length;
  const facts = { processes, ready, recentlyEnded };
  const warning = silent > 0 ? [`${silent} of ${ready} ready processes do not respond`] : [];
  const missing = ready < processes ? [`${ready} of ${processes} processes are ready`] : [];
  const own: CheckResult =
    silent === ready
      ? { ok: false, reason: ready === 0 ? "no process is ready" : "no process responds", facts }
      : { ok: true, warnings: [...missing, ...warning], facts };
  return toHealthReport({ ...checks, processes: own });
}

/** Each process holds some shards of the sources. */
function addShards(worse: CheckResult, a: CheckResult, b: CheckResult): CheckResult {
  const [one, other] = [a.facts?.shards, b.facts?.shards];
  if (typeof one !== "number" || typeof other !== "number") return worse;
  return { ...worse, facts: { ...worse.facts, shards: one + other } };
}
