import type { Caller } from "../../../http/context.ts";
import type { Listed } from "../../../http/page.ts";
import { notFound } from "../../../http/problem.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { requireRow, STORES } from "../../kit/references.ts";
import { refuseInUse, refuseTaken } from "../../kit/refusals.ts";
import { visibleCategories } from "../store-scope.ts";
import {
  type CategoriesQuery,
  type Category,
  type CategoryInput,
  categoryContent,
  renderCategory,
} from "./schema.ts";

const TAKEN = "The store has a category of that name already.";

const rows = ownedRows("storeCategories", {
  prefix: "cat",
  entity: "storeCategory",
  words: "store category",
});

/** @throws ApiError 404 where the caller does not see its store */
export async function getCategory({ db }: RowDeps, caller: Caller, id: string): Promise<Category> {
  const row = await visibleCategories(db, caller).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("store category");
  return renderCategory(row);
}

export async function listCategories(
  { db }: RowDeps,
  caller: Caller,
  { storeId, ...page }: CategoriesQuery,
): Promise<Listed<Category>> {
  if (storeId === undefined) return mapPage(await rows.list(db, caller, page), renderCategory);
  const all = visibleCategories(db, caller).selectAll().where("storeId", "=", storeId);
  return mapPage(await listPage(all, page), renderCategory);
}

/** @throws ApiError 404 where the organization has no such store, 409 where the store has one of that name */
export async function createCategory(
  { db, clock }: RowDeps,
  caller: Caller,
  input: CategoryInput,
): Promise<Category> {
  const created = db.transaction().execute(async (trx) => {
    await requireRow(trx, caller, STORES, input.storeId);
    return rows.insert(trx, caller, input, clock());
  });
  return renderCategory(await refuseTaken(TAKEN, created));
}

/** @throws ApiError 400, 404, 409 where the store has another of that name */
export async function updateCategory(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Category> {
  const updated = db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { name, description } = before;
    const content = applyPatch(categoryContent, { name, description }, patch);
    return rows.update(trx, caller, before, content, clock());
  });
  return renderCategory(await refuseTaken(TAKEN, updated));
}

/** @throws ApiError 404, and 409 while artifacts are in it */
export async function deleteCategory({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("There are artifacts in the category.", deleted);
}
