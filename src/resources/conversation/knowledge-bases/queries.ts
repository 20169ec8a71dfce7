import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import {
  COLLECTIONS,
  ifRenamed,
  requireAccount,
  requireRow,
  requireSpace,
  spaceOf,
} from "../../kit/references.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import { type KnowledgeBase, renderKnowledgeBase } from "../agent-entities.ts";
import { contentOf, type KnowledgeBaseInput, knowledgeBaseInput } from "./schema.ts";

const rows = ownedRows("knowledgeBases", { prefix: "kb", words: "knowledge base" });

export const getKnowledgeBase = async ({ db }: RowDeps, caller: Caller, id: string): Promise<KnowledgeBase> =>
  renderKnowledgeBase(await rows.get(db, caller, id));

export const listKnowledgeBases = async (
  { db }: RowDeps,
  caller: Caller,
  page: Page,
): Promise<Listed<KnowledgeBase>> => mapPage(await rows.list(db, caller, page), renderKnowledgeBase);

/** @throws ApiError 404 for owner, space and collection */
export async function createKnowledgeBase(
  { db, clock }: RowDeps,
  caller: Caller,
  { ownerId = caller.accountId, ...input }: KnowledgeBaseInput,
): Promise<KnowledgeBase> {
  return db.transaction().execute(async (trx) => {
    await requireAccount(trx, caller, ownerId);
    const spaceId = await spaceOf(trx, caller, input.spaceId);
    await requireRow(trx, caller, COLLECTIONS, input.collectionId);
    const content = { ...contentOf(input), ownerId, spaceId };
    return renderKnowledgeBase(await rows.insert(trx, caller, content, clock()));
  });
}

/** @throws ApiError 404 for the knowledge base, its owner, its space and its collection */
export async function updateKnowledgeBase(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<KnowledgeBase> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { id: _, organizationId, createdAt, updatedAt, ...written } = renderKnowledgeBase(before);
    const { ownerId = null, spaceId = null, ...input } = applyPatch(knowledgeBaseInput, written, patch);
    await requireAccount(trx, caller, ifRenamed(before.ownerId, ownerId));
    await requireSpace(trx, caller, ifRenamed(before.spaceId, spaceId));
    await requireRow(trx, caller, COLLECTIONS, ifRenamed(before.collectionId, input.collectionId));
    const content = { ...contentOf(input), ownerId, spaceId };
    return renderKnowledgeBase(await rows.update(trx, caller, before, content, clock()));
  });
}

/** @throws ApiError 409 while agents have it */
export async function deleteKnowledgeBase({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("Agents have the knowledge base.", deleted);
}
