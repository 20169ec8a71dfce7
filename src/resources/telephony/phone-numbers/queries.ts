import type { Queryable, Trx } from "../../../data/database.ts";
import type { SipTrunkRow } from "../../../data/telephony-tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { isId } from "../../../lib/ids.ts";
import { mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { toE164 } from "./e164.ts";
import {
  type AssignInput,
  type PhoneNumber,
  phoneNumberInput,
  type RegisterInput,
  renderPhoneNumber,
} from "./schema.ts";

export interface PhoneNumberDeps {
  readonly db: Queryable;
  readonly clock: Clock;
  /** The carriers that there are, by name. */
  readonly sipProviders: readonly string[];
}
type Deps = Omit<PhoneNumberDeps, "sipProviders">;

const rows = ownedRows("phoneNumbers", { prefix: "pn", entity: "phoneNumber", words: "phone number" });

export const getPhoneNumber = async ({ db }: Deps, caller: Caller, id: string): Promise<PhoneNumber> =>
  renderPhoneNumber(await rows.get(db, caller, id));

export const listPhoneNumbers = async (
  { db }: Deps,
  caller: Caller,
  page: Page,
): Promise<Listed<PhoneNumber>> => mapPage(await rows.list(db, caller, page), renderPhoneNumber);

/**
 * Registers the number for the caller's organization, which has it until it deletes it.
 *
 * @throws ApiError 400 for a number that is none of its country's, or another carrier than the trunk's; 404 without such a
 * trunk; 409 where anybody has the number
 */
export async function registerPhoneNumber(
  { db, clock }: Deps,
  caller: Caller,
  { countryCode, phoneNumber, sipProvider, sipTrunkId }: RegisterInput,
): Promise<PhoneNumber> {
  const e164 = await toE164(countryCode, phoneNumber);
  if (!e164.ok) throw invalidParameters([e164.error]);
  const registered = db.transaction().execute(async (trx) => {
    const trunk = await requireTrunk(trx, caller, sipTrunkId);
    if (trunk.sipProvider !== sipProvider) throw unlikeTrunk("sipProvider");
    const content = {
      ...{ countryCode, e164: e164.value, trunkId: trunk.id, channelId: null },
      ...{ assigned: true, status: "pending_activation" as const },
    };
    return rows.insert(trx, caller, content, clock());
  });
  return renderPhoneNumber(await refuseTaken("The phone number is registered already.", registered));
}

/** @throws ApiError 404, and 409 where it is assigned already */
export async function assignPhoneNumber(
  { db, clock }: Deps,
  caller: Caller,
  { phoneNumberId, channelId }: AssignInput,
): Promise<PhoneNumber> {
  return db.transaction().execute(async (trx) => {
    const row = await rows.lock(trx, caller, phoneNumberId);
    if (row.assigned) throw conflict("The phone number is assigned already.");
    return renderPhoneNumber(await rows.update(trx, caller, row, { assigned: true, channelId }, clock()));
  });
}

/** @throws ApiError 404, and 409 where it is not assigned */
export async function unassignPhoneNumber(
  { db, clock }: Deps,
  caller: Caller,
  phoneNumberId: string,
): Promise<PhoneNumber> {
  return db.transaction().execute(async (trx) => {
    const row = await rows.lock(trx, caller, phoneNumberId);
    if (!row.assigned) throw notAssigned();
    const content = { assigned: false, channelId: null, status: "pending_activation" as const };
    return renderPhoneNumber(await rows.update(trx, caller, row, content, clock()));
  });
}

/** @throws ApiError 400, 404 where the number or the trunk is not there, 409 where it is not assigned */
export async function updatePhoneNumber(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<PhoneNumber> {
  return db.transaction().execute(async (trx) => {
    const row = await rows.lock(trx, caller, id);
    const { channelId, trunkId, status } = row;
    const input = applyPatch(phoneNumberInput, { channelId, trunkId, status }, patch);
    if (input.trunkId !== trunkId) {
      const next = await requireTrunk(trx, caller, input.trunkId);
      // Not locked: a trunk with numbers keeps its carrier.
      const before = await trx
        .selectFrom("sipTrunks")
        .select("sipProvider")
        .where("id", "=", trunkId)
        .executeTakeFirstOrThrow();
      if (next.sipProvider !== before.sipProvider) throw unlikeTrunk("trunkId");
    }
    if (!row.assigned) throw notAssigned();
    return renderPhoneNumber(await rows.update(trx, caller, row, input, clock()));
  });
}

/** It can be registered anew, by anybody. */
export async function deletePhoneNumber({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
}

/** The trunk, which nobody changes or deletes until the transaction ends. @throws ApiError 404 */
async function requireTrunk(
  trx: Trx,
  { organizationId }: Caller,
  id: string,
): Promise<Pick<SipTrunkRow, "id" | "sipProvider">> {
  const found = isId("trk", id)
    ? await trx
        .selectFrom("sipTrunks")
        .select(["id", "sipProvider"])
        .where("id", "=", id)
        .where("organizationId", "=", organizationId)
        .forShare()
        .executeTakeFirst()
    : undefined;
  if (!found) throw notFound("SIP trunk");
  return found;
}

const notAssigned = () => conflict("The phone number is not assigned.");
const unlikeTrunk = (path: string) =>
  invalidParameters([{ path, message: "is not of the same carrier as the SIP trunk" }]);
