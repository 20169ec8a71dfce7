import type { SettingsDeps } from "../../../channels/settings.ts";
import { invalidParameters } from "../../../http/problem.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { checkBlueprintChannels } from "./content.ts";
import { blueprint } from "./schema.ts";

export type BlueprintDeps = SettingsDeps & RowDeps;

/** Blueprints: what an app and its channels are installed from. */
export const blueprints = standardResource({
  path: "/blueprints",
  tag: "Blueprints",
  name: "blueprint",
  table: "blueprints",
  shape: blueprint,
  audit: "blueprint",
  version: (row) => row,
  taken: {
    when: "the organization has another blueprint of that uid",
    message: "There is a blueprint of that uid already.",
  },
  async readBody({ channels }, deps: BlueprintDeps, { organizationId }) {
    if (channels === undefined) return {};
    const checked = await checkBlueprintChannels(deps, channels, organizationId);
    if (!checked.ok) throw invalidParameters(checked.error);
    return { channels: checked.value };
  },
  notes: {
    update: { description: "Apps that were installed from it stay as they are until they are upgraded." },
    delete: { description: "Apps that were installed from it stay; they no longer name a blueprint." },
  },
});
