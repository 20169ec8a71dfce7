import type { ColumnType, Selectable } from "kysely";
import type { Json, Timestamps } from "./columns.ts";

export type TaskStatus = "created" | "running" | "completed" | "failed" | "canceled";

export interface TaskError {
  readonly code: string;
  readonly message: string;
}

type FreeForm = ColumnType<unknown, string | null, string | null>;
type Time = ColumnType<Date | null, Date | null, Date | null>;

export interface TasksTable extends Timestamps {
  id: string;
  organizationId: string;
  /** Of the same organization, and never below this one. */
  parentId: string | null;
  appId: string | null;
  authorId: string | null;
  executorId: string | null;
  stateId: string | null;
  targetId: string | null;
  title: string;
  description: string | null;
  kind: string;
  status: TaskStatus;
  input: FreeForm;
  output: FreeForm;
  params: Json<Readonly<Record<string, unknown>>>;
  errors: Json<readonly TaskError[]>;
  /** What description, input, output, params and errors take as text. */
  contentBytes: number;
  startedAt: Time;
  endedAt: Time;
}

export type TaskRow = Selectable<TasksTable>;
