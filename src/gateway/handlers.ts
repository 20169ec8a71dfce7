import { openJobQueue } from "../bus/jobs/job-queue.ts";
import { createEventCursors } from "../bus/topics/event-cursors.ts";
import { createTopicReader } from "../bus/topics/read-after.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { FindRetry, PendingRetry, SendAgain } from "../event/handler.ts";
import { startAgentWatch } from "../handlers/agent-watch.ts";
import { createAgents } from "../handlers/agents.ts";
import { createAttempt } from "../handlers/attempt.ts";
import { createFilter } from "../handlers/filter.ts";
import { type HandlersDeps, type HandlersTiming, startHandlers } from "../handlers/handlers.ts";
import { createRetryQueue } from "../handlers/retry-queue.ts";
import { createValidatorFor } from "../ingest/validators.ts";
import type { CredentialsOf } from "../net/credentials.ts";
import type { Foundation } from "./foundation.ts";

export interface OpenHandlersDeps
  extends Pick<
    Foundation,
    | "config"
    | "db"
    | "redis"
    | "keyring"
    | "outbound"
    | "schemas"
    | "metrics"
    | "clock"
    | "redisClock"
    | "log"
    | "tracing"
  > {
  readonly changes: ChangeSubscriptions;
  readonly appended: HandlersDeps["appended"];
  readonly credentialsOf: CredentialsOf;
  readonly timing: Partial<HandlersTiming>;
  /** Public base URL of the API. */
  readonly baseUrl: string;
}

/** Sends events to handlers. Every gateway can schedule a retry, but only gateways with the role `delivery` call `start`. */
export interface OpenedHandlers extends AsyncDisposable {
  readonly sendAgain: SendAgain;
  readonly findRetry: FindRetry;
  readonly start: () => AsyncDisposable;
}

export function openHandlers(deps: OpenHandlersDeps): OpenedHandlers {
  const { redis, log, metrics, redisClock } = deps;
  const queue = openJobQueue<PendingRetry>({ redis, name: "handlers", aheadMs: redisClock.aheadMs, log });
  const retries = createRetryQueue(queue);
  return {
    sendAgain: retries.sendAgain,
    findRetry: retries.findRetry,
    start() {
      const started = new AsyncDisposableStack();
      const agents = started.use(
        createAgents({
          ...deps,
          cursors: createEventCursors(deps.keyring),
          reader: createTopicReader(deps),
          messageId: deps.config.mcpWebhookId,
          onEnded: (reason) => metrics.agentSubscriptionsEnded.inc({ reason }),
        }),
      );
      started.use(startAgentWatch({ ...deps, agents }));
      started.use(
        startHandlers({
          ...deps,
          agents,
          queue,
          retries,
          attempt: createAttempt({ ...deps, createAgentEvent: agents.createAgentEvent }),
          filter: createFilter({ validatorFor: createValidatorFor(deps.schemas) }),
          onIgnored: () => metrics.handlerIgnored.inc(),
          observe({ kind, attempt: { status, durationMs }, traceId }) {
            metrics.handlerAttempts.add(kind, status === null ? "none" : `${Math.floor(status / 100)}xx`);
            metrics.handlerSeconds.observe(durationMs / 1000, kind, traceId);
          },
        }),
      );
      return started;
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}
