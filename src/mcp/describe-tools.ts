import type { ToolSpec } from "./tools.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** A tool as an MCP server lists it, and the API request that it stands for. */
export interface ApiTool extends ToolSpec {
  /** JSON Schema of the arguments: the parameters and body fields of the operation in one object. */
  readonly inputSchema: { readonly type: "object" } & JsonObject;
  /** Permission that the operation requires. */
  readonly permission: string | undefined;
  readonly method: string;
  /** Path below the API version prefix. Parameters are written as `{name}`. */
  readonly path: string;
  readonly queryNames: readonly string[];
  readonly bodyNames: readonly string[];
}

interface Operation {
  readonly operationId?: string;
  readonly "x-permission"?: string;
  readonly parameters?: readonly JsonObject[];
  readonly requestBody?: JsonObject;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonObject;
}

/**
 * Derives tools from the OpenAPI document of the management API.
 *
 * @throws Error if the document lacks the operation of a tool
 */
export function describeTools(document: JsonObject, specs: readonly ToolSpec[]): readonly ApiTool[] {
  const inline = createInliner(document);
  const operations = new Map(
    Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        operation.operationId,
        { path, method, operation },
      ]),
    ),
  );
  return specs.map((spec) => {
    const found = operations.get(spec.operation);
    if (found === undefined) throw new Error(`the API has no operation ${spec.operation}`);
    const { path, method, operation } = found;
    return { ...spec, path, method: method.toUpperCase(), ...describeInput(operation, inline) };
  });
}

type Inline = (value: unknown) => unknown;

function describeInput(operation: Operation, inline: Inline) {
  const parameters = (inline(operation.parameters ?? []) as readonly Parameter[]).filter(
    (parameter) => parameter.in === "path" || parameter.in === "query",
  );
  const body = bodySchemaOf(inline(operation.requestBody) as JsonObject | undefined);
  const properties: Record<string, unknown> = { ...body.properties };
  for (const { name, description, schema } of parameters)
    properties[name] = description === undefined ? schema : { ...schema, description };
  const required = [
    ...parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    ...body.required,
  ];
  return {
    inputSchema: {
      type: "object" as const,
      properties,
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
    permission: operation["x-permission"],
    queryNames: parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name),
    bodyNames: Object.keys(body.properties),
  };
}

function bodySchemaOf(requestBody: JsonObject | undefined): {
  readonly properties: JsonObject;
  readonly required: readonly string[];
} {
  const content = requestBody?.content as Record<string, { readonly schema: JsonObject }> | undefined;
  const { properties = {}, required = [] } = content?.["application/json"]?.schema ?? {};
  return { properties: properties as JsonObject, required: required as readonly string[] };
}

/** Creates a function that replaces each `$ref` by its target, because a tool's schema stands alone. */
function createInliner(document: JsonObject): Inline {
  function inline(value: unknown, open: readonly string[]): unknown {
    if (Array.isArray(value)) return value.map((item) => inline(item, open));
    if (typeof value !== "object" || value === null) return value;
    const { $ref, ...rest } = value as { readonly $ref?: unknown };
    if (typeof $ref === "string") {
      // A schema that contains itself accepts any value at the second level.
      if (open.includes($ref)) return {};
      return { ...(inline(resolve(document, $ref), [...open, $ref]) as object), ...rest };
    }
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inline(member, open)]));
  }
  return (value) => inline(value, []);
}

/** Resolves a reference such as `#/components/schemas/Event`. */
const resolve = (document: JsonObject, ref: string): unknown =>
  ref
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((at, name) => (at as JsonObject)[name], document);
