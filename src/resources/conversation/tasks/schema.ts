import { z } from "zod";
import type { TaskRow } from "../../../data/task-tables.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { opaqueIdInput } from "../../kit/fields.ts";
import { bounded, freeFormInput, freeFormText, mapInput } from "../../kit/free-form.ts";
import { patchOf } from "../../kit/merge.ts";
import { timesOf } from "../../kit/times.ts";

export const TASK_STATUSES = ["created", "running", "completed", "failed", "canceled"] as const;

const text = z.string().nullable();
const time = timestamp.nullable();
const status = z
  .enum(TASK_STATUSES)
  .meta({ description: "From created to running to completed, failed or canceled." });
const errorSchema = z
  .strictObject({ code: z.string().min(1).max(255), message: z.string().max(4_096) })
  .meta({ example: { code: "timeout", message: "Nobody answered." } });

const taskScalars = {
  id: id("task"),
  appId: text,
  authorId: text,
  executorId: text,
  organizationId: id("org"),
  parentId: text,
  stateId: text,
  targetId: text,
  title: z.string(),
  description: text,
  kind: z.string(),
  status,
  input: z.unknown().meta({ description: "Anything, or null." }),
  output: z.unknown().meta({ description: "Anything, or null." }),
  params: z.record(z.string(), z.unknown()),
  errors: z.array(errorSchema),
  createdAt: timestamp,
  startedAt: time,
  endedAt: time,
  updatedAt: timestamp,
};

/** A task without what is below it. */
export type TaskNode = Shown<z.output<z.ZodObject<typeof taskScalars>>>;
/** With all that is below it. */
export interface Task extends TaskNode {
  readonly children: readonly Task[];
}

/** The task as the API answers it. */
export const taskSchema = z
  .object({
    ...taskScalars,
    get children(): z.ZodArray<z.ZodType<Task>> {
      return z.array(taskSchema).meta({ description: "Tasks of which it is the parent, and theirs." });
    },
  })
  .meta({ id: "Task", description: "Something that is to be done, with its parts." });

/** What is written of a task beside its status, and what a patched one must still be. */
export const taskInput = z.strictObject({
  title: z.string().min(1).max(255).meta({ example: "Send the report" }),
  description: z.string().max(4_096).nullable().default(null),
  kind: z.string().min(1).max(255).default("default").meta({ example: "default" }),
  parentId: z.string().nullable().default(null).meta({ description: "The task that it is a part of." }),
  appId: z.string().nullable().default(null).meta({ description: "An app." }),
  executorId: z.string().nullable().default(null).meta({ description: "The account that is to do it." }),
  stateId: z.string().nullable().default(null).meta({ description: "A state." }),
  targetId: opaqueIdInput,
  input: freeFormInput,
  params: mapInput,
});
export type TaskInput = z.output<typeof taskInput>;

export const taskPatch = patchOf(taskInput);

export const taskEndInput = z
  .strictObject({
    output: freeFormInput,
    errors: bounded(z.array(errorSchema).max(100))
      .default([])
      .meta({ description: "What went wrong: with any, the task has failed.", example: [] }),
  })
  .superRefine(({ output, errors }, context) => {
    if (output !== null && errors.length > 0)
      context.addIssue({ code: "custom", path: ["output"], message: "is not given with errors" });
  });
export type TaskEnd = z.output<typeof taskEndInput>;

export const taskQuery = z.object({
  ...pageQuery,
  parentId: z.string().optional().meta({ description: "Only those directly below that task." }),
  status: z.enum(TASK_STATUSES).optional().meta({ description: "Only those of that status." }),
});
export type TaskFilter = Pick<z.output<typeof taskQuery>, "parentId" | "status">;

export function renderTask(row: TaskRow): TaskNode {
  const { contentBytes, startedAt, endedAt, createdAt, updatedAt, ...fields } = row;
  return {
    ...fields,
    startedAt: startedAt && formatTimestamp(startedAt.getTime()),
    endedAt: endedAt && formatTimestamp(endedAt.getTime()),
    ...timesOf(row),
  };
}

/** What of a task may be large, as it is written, and how large it is. */
export function contentOf({
  description,
  input,
  output,
  params,
  errors,
}: Pick<TaskNode, "description" | "input" | "output" | "params" | "errors">) {
  const texts = {
    input: freeFormText(input),
    output: freeFormText(output),
    params: JSON.stringify(params),
    errors: JSON.stringify(errors),
  };
  const all = [description, ...Object.values(texts)];
  const contentBytes = all.reduce((sum, one) => sum + Buffer.byteLength(one ?? ""), 0);
  return { ...texts, contentBytes };
}
