import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import {
  createSipTrunk,
  deleteSipTrunk,
  getSipTrunk,
  listSipTrunks,
  type SipTrunkDeps,
  updateSipTrunk,
} from "./queries.ts";
import { sipTrunkInputOf, sipTrunkPatchOf, sipTrunkSchema } from "./schema.ts";

const sipTrunk = standardRoutes({
  name: "sipTrunk",
  words: "SIP trunk",
  prefix: "trk",
  entity: sipTrunkSchema,
});

/** SIP trunks: how the numbers of a carrier are reached. */
export const sipTrunks: Resource<SipTrunkDeps> = {
  path: "/telephony/sip-trunks",
  tag: "Telephony",
  routes: (deps) => [
    sipTrunk.create({ body: sipTrunkInputOf(deps.sipProviders) }, ({ caller, body }) =>
      createSipTrunk(deps, caller, body),
    ),
    sipTrunk.list(({ caller, page }) => listSipTrunks(deps, caller, page)),
    sipTrunk.get(({ caller, id }) => getSipTrunk(deps, caller, id)),
    sipTrunk.update(
      {
        body: sipTrunkPatchOf(deps.sipProviders),
        conflict: "the carrier of a trunk with numbers is changed",
      },
      ({ caller, id, patch }) => updateSipTrunk(deps, caller, id, patch),
    ),
    sipTrunk.remove({ conflict: "phone numbers, assigned or not, are on the trunk" }, ({ caller, id }) =>
      deleteSipTrunk(deps, caller, id),
    ),
  ],
};
