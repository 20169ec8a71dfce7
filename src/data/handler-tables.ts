import type { HandlerAttempt } from "../event/handler.ts";
import type { Json, Timestamp } from "./columns.ts";

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
