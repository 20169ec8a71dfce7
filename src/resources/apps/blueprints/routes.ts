import { findIntake, removeIntake } from "../../../data/intakes/intakes.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { checkBlueprintChannels } from "./content.ts";
import { blueprint } from "./schema.ts";

export const blueprints = standardResource({
  path: "/blueprints",
  tag: "Blueprints",
  name: "blueprint",
  table: "blueprints",
  shape: blueprint,
  audit: "blueprint",
  version: (row) => row,
  taken: {
    when: "the organization already has a blueprint with this uid",
    message: "A blueprint with this uid already exists.",
  },
  async readBody({ channels }, deps, { organizationId }) {
    if (channels === undefined) return {};
    const checked = await checkBlueprintChannels(deps, channels, organizationId);
    if (!checked.ok) throw invalidParameters(checked.error);
    return { channels: checked.value };
  },
  async prepare({ before, values }) {
    const uid = before?.intake?.channel;
    if (uid === undefined || values.channels.some((channel) => channel.uid === uid)) return {};
    const message = `must contain the channel ${uid}, to which the intake routes its items`;
    throw invalidParameters([{ path: "channels", message }]);
  },
  async remove({ trx, row, nowMs, remove }) {
    const intake = await findIntake(trx, row.id);
    if (intake) await removeIntake(trx, intake, nowMs);
    await remove();
  },
  notes: {
    update: { description: "Apps installed from the blueprint change only when you upgrade them." },
    delete: {
      description:
        "Apps installed from the blueprint are kept. Their `blueprintId` becomes null. The blueprint's intake is deleted.",
    },
  },
});
