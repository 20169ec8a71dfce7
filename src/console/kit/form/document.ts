import { isRecord, parseField, type Resolve, type Schema } from "./schema.ts";

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

let loading: Promise<Document> | undefined;

/** Loads the OpenAPI document for the first form, and caches it. If the request fails, the next form requests it again. */
function document(): Promise<Document> {
  loading ??= fetch("/v1/openapi.json", { credentials: "omit" }).then((response) => {
    if (!response.ok) throw new Error(`The gateway responded with status ${response.status}.`);
    return response.json() as Promise<Document>;
  });
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
}

export interface BodySchema {
  readonly schema: Schema;
  readonly resolve: Resolve;
}

/** Returns the schema of an operation's request body: `bodySchema("post", "/apps/{appId}/channels")`. */
export async function bodySchema(method: "post" | "put", path: string): Promise<BodySchema> {
  const { paths, components } = await document();
  const operation = paths[path]?.[method];
  const body = isRecord(operation) && isRecord(operation.requestBody) ? operation.requestBody : {};
  const content = isRecord(body.content) ? body.content["application/json"] : undefined;
  if (!isRecord(content) || !isRecord(content.schema))
    throw new Error(`${method} ${path} has no request body`);
  return { schema: content.schema, resolve: (ref) => components.schemas[ref.split("/").at(-1) ?? ""] };
}

/** Returns the request body schema for one entity kind, if an operation can create several kinds. */
export async function variantSchema(path: string, kind: string): Promise<BodySchema> {
  const { schema, resolve } = await bodySchema("post", path);
  const field = parseField(schema, resolve);
  const variant = field.is === "variants" ? field.variants.find(({ name }) => name === kind) : undefined;
  return { schema: variant?.schema ?? schema, resolve };
}
