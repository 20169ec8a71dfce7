import { sql } from "kysely";
import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict } from "../../../http/problem.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import type { Role } from "../iam-entities.ts";
import { grantPermissions, type IamDeps } from "../iam-grants.ts";
import { renderRole, renderRoles } from "../iam-render.ts";
import { type RoleInput, roleInput } from "./schema.ts";

const rows = ownedRows("roles", { prefix: "role", entity: "role", access: true });
const TAKEN = "There is a role of that name already.";

export const getRole = async ({ db }: IamDeps, caller: Caller, id: string): Promise<Role> =>
  renderRole(await rows.get(db, caller, id));

export async function listRoles({ db }: IamDeps, caller: Caller, page: Page): Promise<Listed<Role>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: renderRoles(items), total };
}

/** @throws ApiError 400 where there is no such permission, 403 where the caller lacks one, 409 where the name is taken */
export async function createRole(deps: IamDeps, caller: Caller, input: RoleInput): Promise<Role> {
  const permissions = grantPermissions(deps, caller, input.permissions);
  const inserted = deps.db
    .transaction()
    .execute((trx) => rows.insert(trx, caller, { ...input, permissions }, deps.clock()));
  return renderRole(await refuseTaken(TAKEN, inserted));
}

/** The same; who changes a role must hold what they add to it. */
export async function updateRole(deps: IamDeps, caller: Caller, id: string, patch: object): Promise<Role> {
  const updated = deps.db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { name, description, permissions } = before;
    const input = applyPatch(roleInput, { name, description, permissions }, patch);
    const granted = grantPermissions(deps, caller, input.permissions, permissions);
    return rows.update(trx, caller, before, { ...input, permissions: granted }, deps.clock());
  });
  return renderRole(await refuseTaken(TAKEN, updated));
}

/** @throws ApiError 409 while a key or a membership has it */
export async function deleteRole({ db, clock }: IamDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // Whoever gives a role away holds it, so nobody does from here on.
    const row = await rows.lock(trx, caller, id);
    if (await isHeld(trx, row)) throw conflict("API keys or members have the role: take it from them first.");
    await rows.remove(trx, caller, row, clock());
  });
}

async function isHeld(trx: Trx, { id }: Row<"roles">): Promise<boolean> {
  const has = sql<boolean>`role_ids @> ARRAY[${id}]::text[]`;
  const { held } = await trx
    .selectNoFrom((eb) =>
      eb
        .or([
          eb.exists(eb.selectFrom("memberships").select("id").where(has)),
          eb.exists(eb.selectFrom("apiKeys").select("id").where(has)),
        ])
        .as("held"),
    )
    .executeTakeFirstOrThrow();
  return Boolean(held);
}
