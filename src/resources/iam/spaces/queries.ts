import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import type { Space } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { renderSpace } from "../iam-render.ts";
import { type SpaceInput, spaceInput } from "./schema.ts";

type Deps = Pick<IamDeps, "db" | "clock">;

const rows = ownedRows("spaces", { prefix: "spc", entity: "space", access: true });

export const getSpace = async ({ db }: Deps, caller: Caller, id: string): Promise<Space> =>
  renderSpace(await rows.get(db, caller, id));

export const listSpaces = async ({ db }: Deps, caller: Caller, page: Page): Promise<Listed<Space>> =>
  mapPage(await rows.list(db, caller, page), renderSpace);

export const createSpace = async ({ db, clock }: Deps, caller: Caller, input: SpaceInput): Promise<Space> =>
  renderSpace(await db.transaction().execute((trx) => rows.insert(trx, caller, input, clock())));

export const updateSpace = async (
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Space> =>
  db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const input = applyPatch(spaceInput, { name: before.name }, patch);
    return renderSpace(await rows.update(trx, caller, before, input, clock()));
  });

/** Keys whose default it was have none, and what was in it but apps is in none. @throws ApiError 409 while it has apps */
export async function deleteSpace({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("The space has apps, or is the one of the first start.", deleted);
}
