import { z } from "zod";
import type { Row } from "../../../data/tables.ts";
import { conflict } from "../../../http/errors.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { ACCOUNTS, type Reference } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { task, taskEndInput, taskStatus } from "./schema.ts";
import { answerTree, holdMoves, rejectCycle, requireRoomInTree, sizeBelow } from "./tree.ts";

type Task = Row<"tasks">;
const TASKS: Reference = { table: "tasks", prefix: "task", words: "task" };
const APPS: Reference = { table: "apps", prefix: "app", words: "app" };
const STATES: Reference = { table: "states", prefix: "state", words: "state" };
const FULL = "the tree would exceed 10,000 tasks or 16 MiB of content";

const nothing = z.strictObject({});

export const tasks = standardResource({
  path: "/tasks",
  tag: "Tasks",
  name: "task",
  table: "tasks",
  shape: task,
  references: { appId: APPS, executorId: ACCOUNTS, stateId: STATES, parentId: TASKS },
  inUse: { when: "the task has children", message: "The task has children. Delete them first." },
  answer: answerTree,
  filters: {
    query: {
      parentId: z.string().optional().meta({ description: "Only the direct children of this task." }),
      status: taskStatus.optional().meta({ description: "Only tasks with this status." }),
    },
    find(db, { organizationId }, { parentId, status }) {
      let all = db.selectFrom("tasks").where("organizationId", "=", organizationId);
      if (parentId !== undefined) all = all.where("parentId", "=", parentId);
      if (status !== undefined) all = all.where("status", "=", status);
      return all;
    },
  },
  async lockFirst(trx, caller, patch) {
    // Run this before the task's row is locked. Otherwise two requests that move tasks concurrently could deadlock.
    if ("parentId" in patch) await holdMoves(trx, caller);
  },
  async prepare({ trx, id, before, values }) {
    const { parentId } = values;
    const contentBytes = bytesOf(values);
    const grown = contentBytes - (before?.contentBytes ?? 0);
    if (parentId !== null && parentId !== before?.parentId) {
      if (before) await rejectCycle(trx, id, parentId);
      const { tasks, bytes } = before ? await sizeBelow(trx, id) : { tasks: 1, bytes: 0 };
      await requireRoomInTree(trx, parentId, { tasks, bytes: bytes + grown });
    } else if (before && grown > 0) await requireRoomInTree(trx, id, { tasks: 0, bytes: grown });
    return { contentBytes };
  },
  notes: {
    create: {
      description: "The author is the caller.",
      missing: "the parent, the app, the executor or the state does not exist",
      conflict: FULL,
    },
    list: { description: "Includes subtasks. Each task is listed without its children." },
    get: { description: "Returns the task with all its subtasks, at any depth." },
    update: {
      description:
        "A new `parentId` moves the task with all its subtasks. A task cannot be moved below itself (400).",
      conflict: FULL,
    },
  },
  more: (_deps, { change }) => [
    defineRoute({
      at: "POST /tasks/:taskId/start",
      operation: "startTask",
      summary: "Start a task",
      body: nothing,
      answer: task.entity,
      conflict: "the status of the task is not `created`",
      handle: ({ caller, params: { taskId } }) =>
        change(caller, taskId, ({ before, nowMs }) => {
          requireStatus(before, "created");
          return { status: "running", startedAt: formatTimestamp(nowMs) };
        }),
    }),
    defineRoute({
      at: "POST /tasks/:taskId/end",
      operation: "endTask",
      summary: "End a task",
      description:
        "The status becomes `failed` if the request has errors, otherwise `completed`. Send either `output` or `errors`, not both.",
      body: taskEndInput,
      answer: task.entity,
      conflict: `the task is not running, or ${FULL}`,
      handle: ({ caller, params: { taskId }, body }) =>
        change(caller, taskId, async ({ trx, before, nowMs }) => {
          requireStatus(before, "running");
          const contentBytes = bytesOf({ ...before, ...body });
          const grown = contentBytes - before.contentBytes;
          if (grown > 0) await requireRoomInTree(trx, taskId, { tasks: 0, bytes: grown });
          const status = body.errors.length > 0 ? "failed" : "completed";
          return { ...body, contentBytes, status, endedAt: formatTimestamp(nowMs) };
        }),
    }),
    defineRoute({
      at: "POST /tasks/:taskId/cancel",
      operation: "cancelTask",
      summary: "Cancel a task",
      description: "The children of the task continue.",
      body: nothing,
      answer: task.entity,
      conflict: "the task is not running",
      handle: ({ caller, params: { taskId } }) =>
        change(caller, taskId, ({ before, nowMs }) => {
          requireStatus(before, "running");
          return { status: "canceled", endedAt: formatTimestamp(nowMs) };
        }),
    }),
  ],
});

/** Checks the task's status. @throws ApiError 409 if the task has another status */
function requireStatus({ status }: Task, required: Task["status"]): void {
  if (status !== required) throw conflict(`The task is ${status}, but must be ${required}.`);
}

/** Returns the size of the task's content in UTF-8 bytes. JSON values are measured in serialized form. */
function bytesOf(content: Pick<Task, "description" | "input" | "output" | "params" | "errors">): number {
  const { description, input, output, params, errors } = content;
  const texts = [input, output, params, errors].map((value) => (value === null ? "" : JSON.stringify(value)));
  return [description ?? "", ...texts].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}
