import { z } from "zod";
import { timestamp } from "../../../http/fields.ts";
import { hidden, json, orElse, readOnly, time } from "../../kit/field.ts";
import { idInput, opaqueIdInput, organizationId, textUpTo } from "../../kit/fields.ts";
import { bounded, freeFormInput, mapInput } from "../../kit/free-form.ts";
import { type Inside, shape, type TableOf } from "../../kit/shape.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    tasks: TableOf<typeof taskFields>;
  }
}

export const taskStatus = z.enum(["created", "running", "completed", "failed", "canceled"]);
const errorSchema = z
  .strictObject({ code: z.string().min(1).max(255), message: z.string().max(4_096) })
  .meta({ example: { code: "timeout", message: "The request timed out." } });
const anything = z.unknown().meta({ description: "Any JSON value, or `null`." });

const taskFields = {
  appId: idInput("An app."),
  authorId: orElse(readOnly(z.string().nullable()), ({ caller }) => caller.accountId),
  executorId: idInput("The account that the task is assigned to."),
  organizationId,
  /** Parent task in the same organization. It must not be a subtask of this task. */
  parentId: idInput("The parent task."),
  stateId: idInput("A state."),
  targetId: opaqueIdInput,
  title: z.string().min(1).max(255).meta({ example: "Send the report" }),
  description: textUpTo(4_096),
  kind: z.string().min(1).max(255).default("default").meta({ example: "default" }),
  status: orElse(
    readOnly(
      taskStatus.meta({
        description: "Changes from created to running, then to completed, failed or canceled.",
      }),
    ),
    () => "created",
  ),
  input: json(freeFormInput),
  output: orElse(readOnly(json(anything)), () => null),
  params: json(mapInput, z.record(z.string(), z.unknown())),
  errors: orElse(readOnly(json(z.array(errorSchema))), () => []),
  /** Size of description, input, output, params and errors, in bytes. JSON values are measured in serialized form. */
  contentBytes: hidden(z.int()),
  startedAt: readOnly(time(timestamp.nullable())),
  endedAt: readOnly(time(timestamp.nullable())),
};

const children: z.ZodArray<Inside<typeof taskFields>> = z
  .array(z.lazy(() => task.entity))
  .meta({ description: "The child tasks, each with its own children." });
export const task = shape({
  prefix: "task",
  fields: taskFields,
  inside: { children: children.optional() },
  meta: { id: "Task", description: "A unit of work with its subtasks." },
});

export const taskEndInput = z
  .strictObject({
    output: freeFormInput,
    errors: bounded(z.array(errorSchema).max(100))
      .default([])
      .meta({ description: "The errors. The task has failed if there is at least one.", example: [] }),
  })
  .superRefine(({ output, errors }, context) => {
    if (output !== null && errors.length > 0)
      context.addIssue({
        code: "custom",
        path: ["output"],
        message: "must be omitted when errors are given",
      });
  });
