import type { ColumnType, Generated } from "kysely";
import type { HandlerAttempt } from "../event/handler.ts";
import type { Json, Timestamp, Timestamps } from "./columns.ts";

export type HandlerError = Pick<HandlerAttempt, "at" | "status" | "code">;

export interface SubscriptionsTable extends Timestamps {
  id: string;
  organizationId: string;
  appId: string;
  eventUid: string;
  connectionId: string | null;
  state: "active" | "paused";
  /** Retention takes soon what it has not read. */
  retentionAtRisk: Generated<boolean>;
  /** Its handler does not take what it is sent. */
  handlerFailing: Generated<boolean>;
  /** Its handler's newest failure. */
  handlerError: ColumnType<HandlerError | null, string | null | undefined, string | null>;
  /** As the caller gave it: `now`, `earliest` or a time. */
  startAt: string;
  /** The start on the bus: milliseconds by Redis time; 0 = earliest. */
  startMs: number;
  handler: ColumnType<unknown, string | null, string | null>;
  sealedHandlerSecret: ColumnType<string | null, string | null | undefined, string | null>;
}

export interface DeadLettersTable {
  id: string;
  subscriptionId: string;
  organizationId: string;
  topic: string;
  entryId: string;
  type: string;
  fields: Json<readonly string[]>;
  attempts: Json<readonly HandlerAttempt[]>;
  reason: string;
  createdAt: Timestamp;
}
