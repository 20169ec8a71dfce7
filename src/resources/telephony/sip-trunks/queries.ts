import type { Queryable, Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import { renderSipTrunk, type SipTrunk, type SipTrunkInput, sipTrunkContent } from "./schema.ts";

export interface SipTrunkDeps {
  readonly db: Queryable;
  readonly clock: Clock;
  /** The carriers that there are, by name. */
  readonly sipProviders: readonly string[];
}
type Deps = Omit<SipTrunkDeps, "sipProviders">;

const rows = ownedRows("sipTrunks", { prefix: "trk", entity: "sipTrunk", words: "SIP trunk" });

export const getSipTrunk = async ({ db }: Deps, caller: Caller, id: string): Promise<SipTrunk> =>
  renderSipTrunk(await rows.get(db, caller, id));

export const listSipTrunks = async ({ db }: Deps, caller: Caller, page: Page): Promise<Listed<SipTrunk>> =>
  mapPage(await rows.list(db, caller, page), renderSipTrunk);

export const createSipTrunk = async (
  { db, clock }: Deps,
  caller: Caller,
  input: SipTrunkInput,
): Promise<SipTrunk> =>
  renderSipTrunk(await db.transaction().execute((trx) => rows.insert(trx, caller, input, clock())));

/** @throws ApiError 409 for another carrier while the trunk has numbers: they are the carrier's */
export async function updateSipTrunk(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<SipTrunk> {
  return db.transaction().execute(async (trx) => {
    const row = await rows.lock(trx, caller, id);
    const { name, sipProvider, host, port, transport } = row;
    const input = applyPatch(sipTrunkContent, { name, sipProvider, host, port, transport }, patch);
    if (input.sipProvider !== sipProvider && (await hasNumbers(trx, id)))
      throw conflict("The SIP trunk has phone numbers, which are of its carrier.");
    return renderSipTrunk(await rows.update(trx, caller, row, input, clock()));
  });
}

/** @throws ApiError 409 while it has numbers, those that are not assigned included */
export async function deleteSipTrunk({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("The SIP trunk has phone numbers.", deleted);
}

/** A number that is being registered holds the trunk's row until it is there. */
async function hasNumbers(trx: Trx, trunkId: string): Promise<boolean> {
  const one = await trx
    .selectFrom("phoneNumbers")
    .select("id")
    .where("trunkId", "=", trunkId)
    .limit(1)
    .executeTakeFirst();
  return one !== undefined;
}
