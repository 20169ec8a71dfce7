import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { compileTemplate } from "../../lib/template.ts";
import { headerName, isHeaderText, queryName, secretText } from "./fields.ts";
import type { ConnectionKind } from "./kind.ts";

type Fields = Readonly<Record<string, string>>;

const MAX_ENTRIES = 20;

const atMost = <T extends z.ZodType<Readonly<Record<string, unknown>>>>(record: T): T =>
  record.refine(
    (entries) => Object.keys(entries).length <= MAX_ENTRIES,
    `must have at most ${MAX_ENTRIES} entries`,
  );
const template = z.string().min(1).max(4_096);

const configSchema = z
  .strictObject({
    fields: atMost(
      z.record(z.string().regex(/^\w{1,64}$/, "must be 1 to 64 letters, digits or _"), secretText),
    ).meta({
      writeOnly: true,
      description: "Secret values by field name, for use in the templates.",
      example: { user: "inlet", key: "k-6f1a" },
    }),
    headers: atMost(z.record(headerName, template))
      .default({})
      .meta({
        description:
          "Headers to add to each request. Their values are templates, in which `{{name}}` stands for a field.",
        example: { "x-auth": "{{user}}/{{key}}" },
      }),
    query: atMost(z.record(queryName, template))
      .describe(
        "Query parameters to add to each request. Their values are templates, in which `{{name}}` stands for a field.",
      )
      .default({}),
    path: template.max(1_024).optional().meta({
      description:
        "Start of the path, for APIs that expect a credential there. A template that begins with a slash. Inlet sends a request for `/getMe` to `/bot…/getMe`.",
      example: "/bot{{key}}",
    }),
  })
  .check(
    checkFields(({ fields, headers, query, path }, note) => {
      const start = path === undefined ? undefined : render(path, fields);
      if (start?.ok === false) note(["path"], start.error);
      else if (start !== undefined && !isPathStart(start.value))
        note(
          ["path"],
          "must render to /segments of letters, digits and - . _ ~ : @ = + that are not . or ..",
        );
      for (const [part, templates] of Object.entries({ headers, query })) {
        for (const [name, text] of Object.entries(templates)) {
          const rendered = render(text, fields);
          if (!rendered.ok) note([part, name], rendered.error);
          else if (part === "headers" && !isHeaderText(rendered.value))
            note([part, name], "must render to visible ASCII characters, as required in headers");
        }
      }
    }),
  );

export const custom: ConnectionKind<typeof configSchema, "custom"> = {
  kind: "custom",
  configSchema,
  secretFields: ["fields"],
  apply({ fields, headers, query, path = "" }) {
    const start = render(path, fields);
    return {
      headers: renderAll(headers, fields),
      query: renderAll(query, fields),
      ...(start.ok && start.value !== "" && { path: start.value }),
    };
  },
};

/** Returns whether URL parsers leave the start of a path as it is, so that it can be removed from addresses again. */
const isPathStart = (text: string): boolean => /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~:@=+-]+)+$/.test(text);

const renderAll = (templates: Fields, fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(templates).flatMap(([name, text]) => {
      const rendered = render(text, fields);
      return rendered.ok ? [[name, rendered.value]] : [];
    }),
  );

function render(text: string, fields: Fields): Result<string, string> {
  const compiled = compileTemplate<Fields>(text, ({ name, filters }) => {
    if (filters.length > 0) return err("must not have filters");
    if (!Object.hasOwn(fields, name)) return err(`refers to the unknown field ${name}`);
    return ok((from) => from[name] ?? "");
  });
  return compiled.ok ? ok(compiled.value(fields)) : compiled;
}
