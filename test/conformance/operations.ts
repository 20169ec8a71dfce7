import { type OpenApi, operationsOf } from "../support/documented.ts";

/** Where a request names an entity: in its path, its query or its body. */
export interface IdPlace {
  readonly where: "path" | "query" | "body";
  /** The parameter, or the steps to the field; `[]` is a step into a list. */
  readonly steps: readonly string[];
  /** What it names, as the path's parameter of that entity: `roleId` for `roleIds` too. */
  readonly kind: string;
}

/** An operation of the management API, as its document has it. */
export interface ApiOperation {
  readonly id: string;
  readonly method: string;
  /** Below the version, parameters in braces. */
  readonly path: string;
  readonly permission: string | undefined;
  /** The parameter by which tokens that are good for one thing alone come in. */
  readonly confined: string | undefined;
  readonly isPublic: boolean;
  readonly creates: boolean;
  readonly isList: boolean;
  readonly parameters: readonly OpenApi[];
  /** Its body's schema, references followed no further than the first; undefined: it takes none. */
  readonly bodySchema: OpenApi;
  readonly bodyExample: OpenApi;
  readonly places: readonly IdPlace[];
}

export const pathNames = (path: string): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);

/** Fields that name entities by another name than that of the path's parameter. */
const ALIASES: Readonly<Record<string, string>> = {
  members: "accountId",
  defaultSpaceId: "spaceId",
  trunkId: "sipTrunkId",
  versionParentId: "formId",
  ownerId: "accountId",
  executorId: "accountId",
  serviceAccountId: "accountId",
};
/** Parts that only some of a kind have: what is named in their path is one of those. */
const PARTS: readonly { readonly path: string; readonly name: string; readonly kind: string }[] = [
  { path: "/{channelId}/source", name: "channelId", kind: "sourceChannelId" },
  { path: "/{subscriptionId}/resume", name: "subscriptionId", kind: "pausedSubscriptionId" },
  { path: "/{subscriptionId}/replay", name: "subscriptionId", kind: "handledSubscriptionId" },
];

/** Only the caller's own account is accepted there. */
const ownOnly = (operation: string, place: IdPlace): IdPlace =>
  operation === "createApiKey" && place.kind === "accountId" ? { ...place, kind: "ownAccountId" } : place;

/** What `roleIds` and `roleId` name. */
export const kindOf = (field: string): string | undefined =>
  ALIASES[field] ?? (/(?:Id|Ids)$/.test(field) ? field.replace(/s$/, "") : undefined);

/** All operations below the version. */
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

/** Names of what is the same for everybody. */
const EVERYBODYS: ReadonlySet<string> = new Set(["name"]);
const namedIn = (path: string) => pathNames(path).filter((name) => !EVERYBODYS.has(name));

const place = (where: IdPlace["where"], steps: readonly string[], name: string): IdPlace => ({
  where,
  steps,
  kind: kindOf(name) ?? name,
});

const partOf = (path: string, name: string): string | undefined =>
  PARTS.find((part) => part.name === name && path.includes(part.path))?.kind;

/** The schema or object that a reference leads to. */
export function follow(document: OpenApi, part: OpenApi): OpenApi {
  if (typeof part?.$ref !== "string") return part;
  const found = part.$ref
    .slice(2)
    .split("/")
    .reduce((at: OpenApi, step: string) => at?.[step], document);
  return follow(document, found);
}

const MAX_DEPTH = 6;

/** The fields of a body that name entities, at any depth. */
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
  return [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].map((one) => follow(document, one));
};
