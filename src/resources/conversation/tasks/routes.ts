import { z } from "zod";
import { listOf } from "../../kit/answer.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { cancelTask, createTask, deleteTask, endTask, listTasks, startTask, updateTask } from "./queries.ts";
import { taskEndInput, taskInput, taskPatch, taskQuery, taskSchema } from "./schema.ts";
import { answerTree } from "./tree.ts";

const task = standardRoutes({ name: "task", prefix: "task", entity: taskSchema });
const params = { taskId: pathId("task", "task") } as const;
const nothing = z.strictObject({});
const FULL = "the tree has 10,000 tasks or 16 MiB of content";

/** Tasks: what is to be done, in trees. */
export const tasks: Resource<RowDeps> = {
  path: "/tasks",
  tag: "Tasks",
  routes: (deps) => [
    task.create(
      {
        body: taskInput,
        description: "The author is the caller.",
        missing: "the parent, the app, the executor or the state is not there",
        conflict: FULL,
      },
      ({ caller, body }) => createTask(deps, caller, body),
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listTasks",
        summary: "List the tasks",
        description: "Those that are parts of others among them; each without its own children.",
        query: taskQuery,
        answer: listOf(taskSchema),
      },
      ({ caller, query: { parentId, status, ...page } }) =>
        listTasks(deps, caller, { parentId, status }, page),
    ),
    task.get(({ caller, id }) => answerTree(deps.db, caller, id), {
      description: "With all that is below it, however deep.",
    }),
    task.update(
      {
        body: taskPatch,
        description:
          "With another `parentId` it is moved, and all that is below it; never below itself (400).",
        missing: "it, or something that the change names, is not there",
        conflict: FULL,
      },
      ({ caller, id, patch }) => updateTask(deps, caller, id, patch),
    ),
    task.remove({ conflict: "it has children" }, ({ caller, id }) => deleteTask(deps, caller, id)),
    defineRoute(
      {
        method: "post",
        path: "/:taskId/start",
        operation: "startTask",
        summary: "Start a task",
        params,
        body: nothing,
        answer: taskSchema,
        conflict: "it is not in the status `created`",
      },
      ({ caller, params: { taskId } }) => startTask(deps, caller, taskId),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:taskId/end",
        operation: "endTask",
        summary: "End a task",
        description:
          "With errors it has failed, else it is completed; `output` and errors exclude each other.",
        params,
        body: taskEndInput,
        answer: taskSchema,
        conflict: `it is not running, or ${FULL}`,
      },
      ({ caller, params: { taskId }, body }) => endTask(deps, caller, taskId, body),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:taskId/cancel",
        operation: "cancelTask",
        summary: "Cancel a task",
        description: "Its children go on.",
        params,
        body: nothing,
        answer: taskSchema,
        conflict: "it is not running",
      },
      ({ caller, params: { taskId } }) => cancelTask(deps, caller, taskId),
    ),
  ],
};
