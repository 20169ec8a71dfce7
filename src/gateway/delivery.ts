import type { RedisBus } from "../bus/connection/redis.ts";
import { openJobQueue } from "../bus/jobs/job-queue.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Database } from "../data/database.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { createAttempt } from "../delivery/attempt.ts";
import {
  type Handlers,
  type HandlersDeps,
  type HandlersTiming,
  startHandlers,
} from "../delivery/handlers.ts";
import { createRetryQueue } from "../delivery/retry-queue.ts";
import type { PendingDelivery, SendAgain } from "../event/handler.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { CredentialsOf } from "../net/credentials.ts";
import type { Outbound } from "../net/outbound.ts";

export interface DeliveryDeps {
  readonly db: Database["db"];
  readonly changes: ChangeSubscriptions;
  readonly appended: HandlersDeps["appended"];
  readonly keyring: Keyring;
  readonly redis: RedisBus;
  readonly outbound: Outbound;
  readonly credentialsOf: CredentialsOf;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<HandlersTiming>;
}

/** The way of events to handlers: every gateway may add retries, those with the role `delivery` work them off. */
export interface Delivery extends AsyncDisposable {
  readonly sendAgain: SendAgain;
  readonly start: () => Handlers;
}

export function openDelivery(deps: DeliveryDeps): Delivery {
  const { redis, log, metrics } = deps;
  const queue = openJobQueue<PendingDelivery>({ redis, name: "handlers", log });
  const retries = createRetryQueue(queue);
  return {
    sendAgain: retries.sendAgain,
    start: () =>
      startHandlers({
        ...deps,
        queue,
        retries,
        attempt: createAttempt(deps),
        observe: ({ kind, attempt: { status } }) =>
          metrics.handlerAttempts.add(kind, status === null ? "none" : `${Math.floor(status / 100)}xx`),
      }),
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}
