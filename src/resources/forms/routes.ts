import { deleted } from "../../http/fields.ts";
import { requireMatch, showVersion } from "../../http/version.ts";
import { listOf } from "../kit/answer.ts";
import { mapPage } from "../kit/list-page.ts";
import { pathId } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import {
  createForm,
  deleteForm,
  type FormDeps,
  getForm,
  listForms,
  updateForm,
  versionOf,
} from "./queries.ts";
import { formInput, formPatch, formSchema, formsQuery, renderForm } from "./schema.ts";

const params = { formId: pathId("form", "form") };

/** Forms, and versions of them. */
export const forms: Resource<FormDeps> = {
  path: "/forms",
  tag: "Forms",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "createForm",
        summary: "Create a form",
        description:
          "With `versionParentId` it is a new version of that form, under the same uid; the body is the whole of it.",
        body: formInput,
        answer: formSchema,
        creates: true,
        versioned: true,
        missing: "blueprint or form are not there",
        conflict: "the organization has another form of that uid",
      },
      async ({ caller, body, c }) => {
        const row = await createForm(deps, caller, body);
        showVersion(c, versionOf(row));
        return renderForm(row);
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listForms",
        summary: "List the forms",
        query: formsQuery,
        answer: listOf(formSchema),
      },
      async ({ caller, query }) => mapPage(await listForms(deps, caller, query), renderForm),
    ),
    defineRoute(
      {
        method: "get",
        path: "/:formId",
        operation: "getForm",
        summary: "Get a form",
        params,
        answer: formSchema,
        versioned: true,
      },
      async ({ caller, params, c }) => {
        const row = await getForm(deps, caller, params.formId);
        showVersion(c, versionOf(row));
        return renderForm(row);
      },
    ),
    defineRoute(
      {
        method: "put",
        path: "/:formId",
        operation: "updateForm",
        summary: "Change a form",
        description: "It changes this version alone.",
        params,
        body: formPatch,
        answer: formSchema,
        versioned: true,
        missing: "form or blueprint are not there",
        conflict: "another form has that uid, or the form has versions or is one and is given another uid",
      },
      async ({ caller, params, body, c }) => {
        const row = await updateForm(deps, caller, params.formId, body, (found) => requireMatch(c, found));
        showVersion(c, versionOf(row));
        return renderForm(row);
      },
    ),
    defineRoute(
      {
        method: "delete",
        path: "/:formId",
        operation: "deleteForm",
        summary: "Delete a form",
        params,
        answer: deleted,
        versioned: true,
        conflict: "the form has versions",
      },
      async ({ caller, params, c }) => {
        const id = params.formId;
        await deleteForm(deps, caller, id, (found) => requireMatch(c, found));
        return { id };
      },
    ),
  ],
};
