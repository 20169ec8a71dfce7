import type { IngestResult } from "../../event/ingest.ts";
import { EMPTY_OUTCOME } from "../../event/outcome.ts";
import type { DryRun, FetchedDelivery, PolledSource, ReconcileRun, SourceRun } from "../source.ts";
import type { Plan } from "./config/plan.ts";
import type { Exchange } from "./fetch/fetch-page.ts";
import { redactRequest, redactValues } from "./fetch/secrets.ts";
import { type PollDeps, pollSource } from "./poll-source.ts";

/** Polls one page with the code of a real poll, but stores nothing. */
export async function dryRunPoll(
  deps: PollDeps,
  plan: Plan,
  run: Parameters<PolledSource["dryRun"]>[0],
): Promise<DryRun> {
  const deliveries: FetchedDelivery[] = [];
  let cursor = run.cursor;
  let last: Exchange | undefined;
  let known = 0;
  const reconcile: ReconcileRun | undefined = run.reconcile && {
    ...run.reconcile,
    idRules: "",
    isPaused: false,
    compare: async () => ({ isKnown: true, firstReceivedMs: undefined }),
    async ingestAll(all, { cursorAfter }) {
      deliveries.push(...all);
      cursor = cursorAfter(all.length - 1);
      return [];
    },
    async report() {},
  };
  const trial: SourceRun = {
    ...run,
    reconcile,
    async ingest(delivery, options) {
      deliveries.push(delivery);
      cursor = options.cursor ?? cursor;
      return ACCEPTED;
    },
    async moveTo(to) {
      cursor = to;
    },
    opened() {},
    warn() {},
  };
  const end = await pollSource(deps, plan, trial, {
    isDryRun: true,
    observe: (exchange) => {
      last = exchange;
    },
    onPage: (items, fresh) => {
      known += items - fresh;
    },
  });
  return {
    request: last === undefined ? unsentRequest(plan) : redactRequest(last.sent),
    response: last?.response
      ? {
          status: last.response.status,
          headers: redactValues(last.response.headers, last.redact),
          bytes: last.response.body.length,
        }
      : null,
    deliveries,
    known,
    cursor: cursor ?? null,
    end,
  };
}

const ACCEPTED: IngestResult = {
  kind: "accepted",
  outcome: EMPTY_OUTCOME,
};

/** Request to show when no request could be built, and therefore none was sent. */
const unsentRequest = ({ config: { request } }: Plan): DryRun["request"] => ({
  method: request.method,
  url: request.url,
  headers: {},
  body: null,
});
