import { type OpenApi, operationsOf } from "../support/documented.ts";

/** A place where a request names an entity: in its path, query or body. */
export interface IdPlace {
  readonly where: "path" | "query" | "body";
  /** The parameter name, or the steps to the field. `[]` is a step into a list. */
  readonly steps: readonly string[];
  /** The kind of entity, named like its path parameter: `roleId` also for `roleIds`. */
  readonly kind: string;
}

/** An operation of the management API, as in its document. */
export interface ApiOperation {
  readonly id: string;
  readonly method: string;
  /** The path relative to `/v1`, with parameters in braces. */
  readonly path: string;
  readonly permission: string | undefined;
  /** The path parameter that tokens for a single entity are confined to. */
  readonly confined: string | undefined;
  readonly isPublic: boolean;
  readonly creates: boolean;
  readonly isList: boolean;
  readonly parameters: readonly OpenApi[];
  /** The body's schema with its first reference resolved, or `undefined` when the operation takes no body. */
  readonly bodySchema: OpenApi;
  readonly bodyExample: OpenApi;
  readonly places: readonly IdPlace[];
}

export const pathNames = (path: string): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);

/** Fields whose name differs from the path parameter of the entity. */
const ALIASES: Readonly<Record<string, string>> = {
  members: "accountId",
  defaultSpaceId: "spaceId",
  trunkId: "sipTrunkId",
  versionParentId: "formId",
  ownerId: "accountId",
  executorId: "accountId",
  serviceAccountId: "accountId",
};
/** Sub-resources that only some entities of a kind have, with the kind to use for their path. */
const PARTS: readonly { readonly path: string; readonly name: string; readonly kind: string }[] = [
  { path: "/blueprints/{blueprintId}/quarantine", name: "itemId", kind: "intakeItemId" },
  { path: "/{channelId}/source/recover", name: "channelId", kind: "reconcilingChannelId" },
  { path: "/{channelId}/source", name: "channelId", kind: "sourceChannelId" },
  { path: "/{channelId}/registration", name: "channelId", kind: "registeredChannelId" },
  { path: "/{subscriptionId}/resume", name: "subscriptionId", kind: "pausedSubscriptionId" },
  { path: "/{subscriptionId}/replay", name: "subscriptionId", kind: "handledSubscriptionId" },
];

/** Restricts the place to the caller's own account when the operation accepts no other. */
const ownOnly = (operation: string, place: IdPlace): IdPlace =>
  operation === "createApiKey" && place.kind === "accountId" ? { ...place, kind: "ownAccountId" } : place;

/** Returns the kind of entity that a field names, such as `roleId` for `roleIds`. */
export const kindOf = (field: string): string | undefined =>
  ALIASES[field] ?? (/(?:Id|Ids)$/.test(field) ? field.replace(/s$/, "") : undefined);

/** Returns all operations below `/v1`. */
export function readOperations(document: OpenApi): readonly ApiOperation[] {
  return operationsOf(document).map(({ method, path }) => {
    const operation = document.paths[path][method];
    const parameters = operation.parameters.map((one: OpenApi) => follow(document, one));
    const media = operation.requestBody?.content?.["application/json"];
    const inBody = media ? idFields(document, media.schema, []) : [];
    const inPath = namedIn(path).map((name) => place("path", [name], partOf(path, name) ?? name));
    const inQuery = parameters
      .filter((one: OpenApi) => one.in === "query" && kindOf(one.name) !== undefined)
      .map(({ name }: OpenApi) => place("query", [name], name));
    return {
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      parameters,
      permission: operation["x-permission"],
      confined: operation["x-confined"],
      isPublic: operation.security !== undefined,
      creates: parameters.some(({ name }: OpenApi) => name === "Idempotency-Key"),
      isList: "X-Total-Count" in (operation.responses["200"].headers ?? {}),
      bodySchema: media && follow(document, media.schema),
      bodyExample: media?.example,
      places: [...inPath, ...inQuery, ...inBody].map((one) => ownOnly(operation.operationId, one)),
    };
  });
}

/** Parameters with values that are the same for all organizations. */
const GLOBAL_NAMES: ReadonlySet<string> = new Set(["name", "type", "version"]);
const namedIn = (path: string) => pathNames(path).filter((name) => !GLOBAL_NAMES.has(name));

const place = (where: IdPlace["where"], steps: readonly string[], name: string): IdPlace => ({
  where,
  steps,
  kind: kindOf(name) ?? name,
});

const partOf = (path: string, name: string): string | undefined =>
  PARTS.find((part) => part.name === name && path.includes(part.path))?.kind;

/** Resolves references and returns the schema or object. */
export function follow(document: OpenApi, part: OpenApi): OpenApi {
  if (typeof part?.$ref !== "string") return part;
  const found = part.$ref
    .slice(2)
    .split("/")
    .reduce((at: OpenApi, step: string) => at?.[step], document);
  return follow(document, found);
}

const MAX_DEPTH = 6;

/** Finds the fields of a body that name entities, at any depth. */
function idFields(document: OpenApi, part: OpenApi, steps: readonly string[]): readonly IdPlace[] {
  const schema = follow(document, part);
  if (steps.length > MAX_DEPTH || typeof schema !== "object" || schema === null) return [];
  const within = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
    const types = variantsOf(document, one).flatMap(({ type }) => type);
    const many = types.includes("array");
    if (kindOf(name) !== undefined && (many || types.includes("string")))
      return [place("body", [...steps, name, ...(many ? ["[]"] : [])], name)];
    return idFields(document, one, [...steps, name]);
  });
  const items = schema.items ? idFields(document, schema.items, [...steps, "[]"]) : [];
  const variants = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  const found = [...within, ...items, ...variants.flatMap((one) => idFields(document, one, steps))];
  return [...new Map(found.map((one) => [one.steps.join("."), one])).values()];
}

const variantsOf = (document: OpenApi, part: OpenApi): readonly OpenApi[] => {
  const schema = follow(document, part);
  const { allOf = [], anyOf = [], oneOf = [] } = schema;
  return [schema, ...allOf, ...anyOf, ...oneOf].map((one) => follow(document, one));
};
