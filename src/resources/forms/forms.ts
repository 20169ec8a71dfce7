import { z } from "zod";
import type { Trx } from "../../data/database.ts";
import { conflict, invalidParameters } from "../../http/errors.ts";
import { id } from "../../http/fields.ts";
import { hidden, json, once, orElse, readOnly, withAnswer } from "../kit/field.ts";
import { idInput, organizationId, textUpTo, uidField } from "../kit/fields.ts";
import { omitUndefined } from "../kit/list-page.ts";
import { BLUEPRINTS, getRow } from "../kit/references.ts";
import { type RowOf, shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { formContent } from "./content.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    forms: TableOf<typeof fields>;
  }
}

/** Account id of the caller. It stays in the row when the account is deleted. */
const byId = orElse(readOnly(id("acc")), ({ caller }) => caller.accountId);

const fields = {
  uid: withAnswer(
    uidField("form"),
    z.string().meta({ description: "The uid of the form. All versions of a form have the same uid." }),
  ),
  title: z.string().min(1).max(255).meta({ example: "Contact" }),
  description: textUpTo(4_096),
  blueprintId: idInput("A blueprint of the organization."),
  organizationId,
  createdById: byId,
  updatedById: byId,
  versionParentId: once(idInput("The form that this is a version of. `null` if it is not a version.")),
  content: json(formContent.default({ items: [], sections: [] }), formContent),
  /** Increases with each write. */
  version: orElse(hidden(z.int()), () => 1),
};

const FORMS = { table: "forms", prefix: "form", words: "form" } as const;

export const forms = standardResource({
  path: "/forms",
  tag: "Forms",
  name: "form",
  table: "forms",
  shape: shape({
    prefix: "form",
    fields,
    meta: { id: "Form", description: "A form with questions." },
  }),
  audit: "form",
  references: { blueprintId: BLUEPRINTS },
  taken: {
    when: "the organization already has a form with this uid",
    message: "A form with this uid already exists.",
  },
  inUse: { when: "the form has versions", message: "The form has versions. Delete them first." },
  // The `ETag` also covers `blueprintId`, because deleting the blueprint sets the field to null without incrementing `version`.
  version: ({ id, version, blueprintId }) => ({
    id: blueprintId === null ? id : `${id}.${blueprintId}`,
    version,
  }),
  filters: {
    query: {
      versionParentId: z.string().optional().meta({ description: "Only the versions of this form." }),
    },
    find: (db, { organizationId }, filters) =>
      db.selectFrom("forms").where((eb) => eb.and(omitUndefined({ organizationId, ...filters }))),
  },
  async prepare({ trx, caller, id, before, values: { uid = id, versionParentId } }) {
    if (before) {
      if (uid !== before.uid && (await isVersioned(trx, before)))
        throw conflict("The uid cannot change, because the form has versions or is a version.");
      return { updatedById: caller.accountId };
    }
    if (versionParentId === null) return {};
    const parent = await getRow(trx, caller, FORMS, versionParentId, "update");
    if (uid !== id && uid !== parent.uid) {
      const message = "must be omitted, or equal the uid of the form in versionParentId";
      throw invalidParameters([{ path: "uid", message }]);
    }
    return { uid: parent.uid };
  },
  notes: {
    create: {
      description:
        "With `versionParentId`, the request creates a new version of that form with the same uid. The body must contain the whole form.",
      missing: "the blueprint or the form does not exist",
    },
    update: {
      description: "Changes only this version.",
      missing: "the form or the blueprint does not exist",
      conflict: "another form has this uid; or the uid changes, and the form has versions or is a version",
    },
  },
});

/** Creating a version of the form locks the form's row, so the result stays valid until the transaction ends. */
async function isVersioned(trx: Trx, { id, versionParentId }: RowOf<typeof fields>): Promise<boolean> {
  if (versionParentId !== null) return true;
  const version = await trx
    .selectFrom("forms")
    .select("id")
    .where("versionParentId", "=", id)
    .limit(1)
    .executeTakeFirst();
  return version !== undefined;
}
