import type { Caller } from "../../../http/context.ts";
import type { Listed } from "../../../http/page.ts";
import { notFound } from "../../../http/problem.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import { visibleStores } from "../store-scope.ts";
import {
  contentOf,
  renderStore,
  type Store,
  type StoreInput,
  type StoresQuery,
  storeInput,
} from "./schema.ts";

const rows = ownedRows("stores", { prefix: "store", entity: "store" });

/** @throws ApiError 404 for a store of another organization that is not public */
export async function getStore({ db }: RowDeps, caller: Caller, id: string): Promise<Store> {
  const row = await visibleStores(db, caller).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("store");
  return renderStore(row);
}

export async function listStores(
  { db }: RowDeps,
  caller: Caller,
  { isPublic, ...page }: StoresQuery,
): Promise<Listed<Store>> {
  if (isPublic === undefined) return mapPage(await rows.list(db, caller, page), renderStore);
  const all = db.selectFrom("stores").selectAll().where("isPublic", "=", true);
  return mapPage(await listPage(all, page), renderStore);
}

export const createStore = async (
  { db, clock }: RowDeps,
  caller: Caller,
  input: StoreInput,
): Promise<Store> =>
  renderStore(await db.transaction().execute((trx) => rows.insert(trx, caller, input, clock())));

/** @throws ApiError 400, 404 */
export async function updateStore(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Store> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const input = applyPatch(storeInput, contentOf(before), patch);
    return renderStore(await rows.update(trx, caller, before, input, clock()));
  });
}

/** Its categories go with it. @throws ApiError 404, and 409 while artifacts, orders or reviews name it */
export async function deleteStore({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("There are artifacts in the store, or orders of it.", deleted);
}
