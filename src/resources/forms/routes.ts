import { z } from "zod";
import type { Trx } from "../../data/database.ts";
import { id } from "../../http/fields.ts";
import { conflict, invalidParameters } from "../../http/problem.ts";
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

/** An account, which need not be there any more. */
const byId = orElse(readOnly(id("acc")), ({ caller }) => caller.accountId);

const fields = {
  uid: withAnswer(uidField("form"), z.string().meta({ description: "That of the form it is a version of." })),
  title: z.string().min(1).max(255).meta({ example: "Contact" }),
  description: textUpTo(4_096),
  blueprintId: idInput("A blueprint of the organization."),
  organizationId,
  createdById: byId,
  updatedById: byId,
  versionParentId: once(idInput("The form that this one is a version of; null: it is none.")),
  content: json(formContent.default({ items: [], sections: [] }), formContent),
  /** Counts the writes. */
  version: orElse(hidden(z.int()), () => 1),
};

const FORMS = { table: "forms", prefix: "form", words: "form" } as const;

/** Forms, and versions of them. */
export const forms = standardResource({
  path: "/forms",
  tag: "Forms",
  name: "form",
  table: "forms",
  shape: shape({
    prefix: "form",
    fields,
    meta: { id: "Form", description: "Questions, to be shown to somebody." },
  }),
  audit: "form",
  references: { blueprintId: BLUEPRINTS },
  taken: {
    when: "the organization has another form of that uid",
    message: "There is a form of that uid already.",
  },
  inUse: { when: "the form has versions", message: "The form has versions." },
  // A blueprint that is deleted leaves its forms without a write of theirs.
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
        throw conflict("A form that has versions, or is one, keeps its uid.");
      return { updatedById: caller.accountId };
    }
    if (versionParentId === null) return {};
    const parent = await getRow(trx, caller, FORMS, versionParentId, "update");
    if (uid !== id && uid !== parent.uid) {
      const message = "must be that of the form it is a version of, or be left out";
      throw invalidParameters([{ path: "uid", message }]);
    }
    return { uid: parent.uid };
  },
  notes: {
    create: {
      description:
        "With `versionParentId` it is a new version of that form, under the same uid; the body is the whole of it.",
      missing: "blueprint or form are not there",
    },
    update: {
      description: "It changes this version alone.",
      missing: "form or blueprint are not there",
      conflict: "another form has that uid, or the form has versions or is one and is given another uid",
    },
  },
});

/** A request that makes a version locks the row of its form. */
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
