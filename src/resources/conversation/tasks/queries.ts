import type { Trx } from "../../../data/database.ts";
import type { TaskRow } from "../../../data/task-tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict } from "../../../http/problem.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { ifRenamed, type Reference, requireAccount, requireRow } from "../../kit/references.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import {
  contentOf,
  renderTask,
  type Task,
  type TaskEnd,
  type TaskFilter,
  type TaskInput,
  taskInput,
} from "./schema.ts";
import { answerTree, holdMoves, refuseCycle, requireRoomInTree, sizeBelow } from "./tree.ts";

const rows = ownedRows("tasks", { prefix: "task", words: "task" });
const TASKS: Reference = { table: "tasks", prefix: "task", words: "task" };
const APPS: Reference = { table: "apps", prefix: "app", words: "app" };
const STATES: Reference = { table: "states", prefix: "state", words: "state" };

/** Each without what is below it. */
export async function listTasks(
  { db }: RowDeps,
  { organizationId }: Caller,
  { parentId, status }: TaskFilter,
  page: Page,
): Promise<Listed<Task>> {
  let all = db.selectFrom("tasks").where("organizationId", "=", organizationId);
  if (parentId !== undefined) all = all.where("parentId", "=", parentId);
  if (status !== undefined) all = all.where("status", "=", status);
  return mapPage(await listPage(all.selectAll(), page), childless);
}

/** @throws ApiError 404 for what it names, 409 where the tree takes no more */
export async function createTask({ db, clock }: RowDeps, caller: Caller, input: TaskInput): Promise<Task> {
  return db.transaction().execute(async (trx) => {
    await requireNamed(trx, caller, input);
    const content = contentOf({ ...input, output: null, errors: [] });
    const { parentId } = input;
    await requireRow(trx, caller, TASKS, parentId);
    if (parentId !== null) await requireRoomInTree(trx, parentId, { tasks: 1, bytes: content.contentBytes });
    const fresh = { status: "created", startedAt: null, endedAt: null } as const;
    const { accountId: authorId } = caller;
    return childless(await rows.insert(trx, caller, { ...input, ...content, ...fresh, authorId }, clock()));
  });
}

/**
 * @throws ApiError 400 where it would be a part of itself, 404 for the task and what it names anew, 409 where the tree takes no
 * more
 */
export async function updateTask(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Response> {
  return db.transaction().execute(async (trx) => {
    // Before the task itself: whoever moves another one below it needs its row.
    if ("parentId" in patch) await holdMoves(trx, caller);
    const before = await rows.lock(trx, caller, id);
    const { title, description, kind, parentId, appId, executorId, stateId, targetId, params } = before;
    const written = { title, description, kind, parentId, appId, executorId, stateId, targetId, params };
    const input = applyPatch(taskInput, { ...written, input: before.input }, patch);
    await requireNamed(trx, caller, {
      appId: ifRenamed(appId, input.appId),
      executorId: ifRenamed(executorId, input.executorId),
      stateId: ifRenamed(stateId, input.stateId),
    });
    const target = ifRenamed(parentId, input.parentId);
    if (target !== null) await requireParent(trx, caller, id, target);
    const content = contentOf({ ...before, ...input });
    const grown = content.contentBytes - before.contentBytes;
    if (target !== null) {
      const { tasks, bytes } = await sizeBelow(trx, id);
      await requireRoomInTree(trx, target, { tasks, bytes: bytes + grown });
    } else if (grown > 0) await requireRoomInTree(trx, id, { tasks: 0, bytes: grown });
    await rows.update(trx, caller, before, { ...input, ...content }, clock());
    return answerTree(trx, caller, id);
  });
}

/** @throws ApiError 404, 409 unless it was just created */
export const startTask = (deps: RowDeps, caller: Caller, id: string): Promise<Response> =>
  step(deps, caller, id, "created", () => ({ status: "running", startedAt: new Date(deps.clock()) }));

/** Completed, or failed where there are errors. @throws ApiError 404, 409 unless it is running or the tree takes no more */
export const endTask = (deps: RowDeps, caller: Caller, id: string, { output, errors }: TaskEnd) =>
  step(deps, caller, id, "running", async (trx, before) => {
    const content = contentOf({ ...before, output, errors });
    const grown = content.contentBytes - before.contentBytes;
    if (grown > 0) await requireRoomInTree(trx, before.id, { tasks: 0, bytes: grown });
    const status = errors.length > 0 ? "failed" : "completed";
    return { ...content, status, endedAt: new Date(deps.clock()) };
  });

/** @throws ApiError 404, 409 unless it is running */
export const cancelTask = (deps: RowDeps, caller: Caller, id: string): Promise<Response> =>
  step(deps, caller, id, "running", () => ({ status: "canceled", endedAt: new Date(deps.clock()) }));

/** @throws ApiError 404, 409 while it has children */
export async function deleteTask({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("The task has children.", deleted);
}

const childless = (row: TaskRow): Task => ({ ...renderTask(row), children: [] });

type Change = Parameters<typeof rows.update>[3];

async function step(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  from: TaskRow["status"],
  change: (trx: Trx, before: TaskRow) => Change | Promise<Change>,
): Promise<Response> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    if (before.status !== from) throw conflict(`The task is ${before.status}, not ${from}.`);
    await rows.update(trx, caller, before, await change(trx, before), clock());
    return answerTree(trx, caller, id);
  });
}

async function requireNamed(
  trx: Trx,
  caller: Caller,
  { appId, executorId, stateId }: Pick<TaskRow, "appId" | "executorId" | "stateId">,
): Promise<void> {
  await requireRow(trx, caller, APPS, appId);
  await requireAccount(trx, caller, executorId);
  await requireRow(trx, caller, STATES, stateId);
}

/** @throws ApiError 404, 400 where the parent is below the task */
async function requireParent(trx: Trx, caller: Caller, id: string, parentId: string): Promise<void> {
  await requireRow(trx, caller, TASKS, parentId);
  await refuseCycle(trx, id, parentId);
}
