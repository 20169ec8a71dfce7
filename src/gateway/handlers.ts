import { openJobQueue } from "../bus/jobs/job-queue.ts";
import { createEventCursors } from "../bus/topics/event-cursors.ts";
import { createTopicReader } from "../bus/topics/read-after.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { FindRetry, PendingRetry, SendAgain } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { parseTopicPrefix } from "../event/topic.ts";
import { startAgentWatch } from "../handlers/agent-watch.ts";
import { createAgents } from "../handlers/agents.ts";
import { createAttempt } from "../handlers/attempt.ts";
import { resultFor } from "../handlers/calls.ts";
import { createFilter } from "../handlers/filter.ts";
import { type HandlersDeps, type HandlersTiming, startHandlers } from "../handlers/handlers.ts";
import { createRetryQueue } from "../handlers/retry-queue.ts";
import { createValidatorFor } from "../ingest/validators.ts";
import type { HandledTopic } from "../metrics/event-counts.ts";
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
          observe(result, events) {
            const { kind, attempt, traceId } = result;
            const { status, durationMs } = attempt;
            metrics.handlerAttempts.add(kind, status === null ? "none" : `${Math.floor(status / 100)}xx`);
            metrics.handlerSeconds.observe(durationMs / 1000, kind, traceId);
            for (const event of events) {
              const counts = metrics.handlerCountsOf(event.topic, () => describeTopic(event));
              if (resultFor(event, result).kind === "taken") counts.succeeded++;
              else counts.failed++;
            }
          },
        }),
      );
      return started;
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/** Returns the channel and type of an event, for its counts. The type comes from the event, because topic names encode some characters. */
const describeTopic = ({ topic, fields }: DeliveredEvent): HandledTopic => ({
  topic,
  ...parseTopicPrefix(topic),
  type: fields[fields.indexOf("type") + 1] ?? "",
});
