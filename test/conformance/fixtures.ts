import type { OpenApi } from "../support/documented.ts";
import type { ApiOperation, IdPlace } from "./operations.ts";
import type { Answered, ApiRequest, Send } from "./requests.ts";
import type { Plant } from "./victim.ts";

/** One organization's entities. Each is created through the API when it is first needed. */
export interface Scope {
  readonly organizationId: string;
  /** Returns the id of an entity of this kind, creating it at the first call. */
  readonly idOf: (kind: string) => Promise<string>;
  /** Sends a request with the organization's own token. */
  readonly send: Send;
  /** Sends a request like `send`, but throws unless it succeeds. */
  readonly call: (method: string, path: string, body?: unknown) => Promise<OpenApi>;
  /** Sends a delivery to a channel. */
  readonly deliver: (channelId: string, body: unknown) => Promise<OpenApi>;
  readonly plant: Plant;
  /** The responses to successful requests of the scope. */
  readonly answers: readonly string[];
}

/** Instructions for entities that the document alone does not explain how to create. */
export interface Recipes {
  /** Ways to get an id that no creating operation returns, by kind. */
  readonly ids: Readonly<Record<string, (scope: Scope) => Promise<string>>>;
  /** Bodies to use instead of the document's example, by operation. `fields` are the fields with ids that the request sets. */
  readonly bodies: Readonly<Record<string, (scope: Scope, fields: readonly string[]) => Promise<object>>>;
}

export interface ScopeOptions {
  readonly organizationId: string;
  readonly send: Send;
  readonly deliver: Scope["deliver"];
  readonly plant: Plant;
  /** Whether to retry a conflict under another name. Otherwise a conflict is an error. */
  readonly rename: boolean;
}

/** Forms of a body to try: the document's example, its required fields only, or an empty object. */
export type BodyForm = "example" | "required" | "alone";
export const BODY_FORMS: readonly BodyForm[] = ["example", "required", "alone"];

export interface Fixtures {
  readonly open: (options: ScopeOptions) => Scope;
  /** Builds a request with the organization's own ids in every place except those in `given`. */
  readonly request: (
    scope: Scope,
    operation: ApiOperation,
    options?: {
      readonly given?: ReadonlyMap<IdPlace, string>;
      readonly form?: BodyForm;
    },
  ) => Promise<ApiRequest>;
  /** Sends a request. After a conflict, sends it once more under another name. */
  readonly sendRenamed: (scope: Scope, request: ApiRequest) => Promise<Answered>;
}

/** Creates entities as the document describes, with the creating operation of the collection in their path. */
export function createFixtures(operations: readonly ApiOperation[], recipes: Recipes): Fixtures {
  let made = 0;

  const request: Fixtures["request"] = async (scope, operation, options = {}) => {
    const { given = new Map(), form = "example" } = options;
    const { method, places, bodySchema } = operation;
    const fields = [...given.keys()].map(({ steps }) => steps.join("."));
    const body = bodySchema && (await bodyOf(scope, operation, form, fields));
    const query = new URLSearchParams();
    let { path } = operation;
    for (const { in: where, name, schema, required } of operation.parameters) {
      const isEverybodys = !places.some((one) => one.where === "path" && one.steps[0] === name);
      if (where === "path" && isEverybodys) path = path.replace(`{${name}}`, schema.examples[0]);
      if (where === "query" && required) query.set(name, schema.examples[0]);
    }
    for (const place of places) {
      const { where, steps, kind } = place;
      const [name = ""] = steps;
      const named = given.get(place);
      if (where === "path") {
        const id = named ?? (await scope.idOf(kind));
        path = path.replace(`{${name}}`, encodeURIComponent(id));
        // A required `id` in a body must equal the last id of the path.
        if (bodySchema?.required?.includes("id") && form !== "alone") setAt(body, ["id"], id);
      } else if (named !== undefined) {
        if (where === "query") query.set(name, named);
        else setAt(body, steps, named);
      }
    }
    const search = query.size === 0 ? "" : `?${query}`;
    return { method, path: path + search, ...(body === undefined ? {} : { body }) };
  };

  async function bodyOf(
    scope: Scope,
    { id, bodySchema, bodyExample, places }: ApiOperation,
    form: BodyForm,
    fields: readonly string[],
  ) {
    if (form === "alone") return {};
    const recipe = recipes.bodies[id];
    const whole = recipe ? await recipe(scope, fields) : structuredClone(bodyExample ?? {});
    for (const { where, steps, kind } of recipe ? [] : places) {
      if (where === "body" && hasAt(whole, steps)) setAt(whole, steps, await scope.idOf(kind));
    }
    if (form === "example") return whole;
    const required: readonly string[] = bodySchema.required ?? [];
    return Object.fromEntries(Object.entries(whole).filter(([name]) => required.includes(name)));
  }

  const sendRenamed: Fixtures["sendRenamed"] = async (scope, one) => {
    const answer = await scope.send(one);
    return answer.status === 409 ? scope.send({ ...one, body: renamed(one.body, ++made) }) : answer;
  };

  async function make(scope: Scope, kind: string, rename: boolean): Promise<string> {
    const recipe = recipes.ids[kind];
    if (recipe) return recipe(scope);
    const operation = creatorOf(operations, kind);
    if (!operation) throw new Error(`no operation creates {${kind}}, and there is no recipe for it`);
    const one = await request(scope, operation);
    const { status, text } = rename ? await sendRenamed(scope, one) : await scope.send(one);
    if (status !== 200) throw new Error(`${operation.id} with ${JSON.stringify(one)}: ${status} ${text}`);
    return JSON.parse(text).id;
  }

  return {
    request,
    sendRenamed,
    open({ organizationId, send, deliver, plant, rename }) {
      const ids = new Map<string, Promise<string>>();
      const answers: string[] = [];
      const noted: Send = async (one) => {
        const answer = await send(one);
        if (answer.status === 200) answers.push(answer.text);
        return answer;
      };
      const scope: Scope = {
        organizationId,
        answers,
        deliver,
        plant,
        send: noted,
        idOf(kind) {
          const known = ids.get(kind) ?? make(scope, kind, rename);
          ids.set(kind, known);
          return known;
        },
        async call(method, path, body) {
          const { status, text } = await noted({ method, path, body });
          if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`);
          return JSON.parse(text);
        },
      };
      return scope;
    },
  };
}

/** Finds the creating operation of a kind: `POST /apps/{appId}/channels` for `/apps/{appId}/channels/{channelId}`. */
export function creatorOf(operations: readonly ApiOperation[], kind: string): ApiOperation | undefined {
  const collections = operations
    .filter(({ path }) => path.endsWith(`/{${kind}}`))
    .map(({ path }) => path.slice(0, -`/{${kind}}`.length))
    .sort((a, b) => a.length - b.length);
  return operations.find(({ method, path }) => method === "POST" && path === collections[0]);
}

/** Fields whose values may have to be unique. */
const NAMES = /^(?:name|uid|identifier|slug|title|email)$/;

const renamed = (body: unknown, n: number): unknown =>
  typeof body === "object" && body !== null
    ? Object.fromEntries(
        Object.entries(body).map(([name, value]) =>
          typeof value === "string" && NAMES.test(name) ? [name, `${value}${n}`] : [name, value],
        ),
      )
    : body;

function hasAt(body: OpenApi, steps: readonly string[]): boolean {
  const [step, ...rest] = steps;
  if (step === undefined) return body !== null && body !== undefined;
  return hasAt(step === "[]" ? body?.[0] : body?.[step], rest);
}

/** Sets the id at this place. A list on the way gets it as its only element. */
export function setAt(body: OpenApi, steps: readonly string[], id: string): void {
  const [step = "", next, ...rest] = steps;
  const key = step === "[]" ? 0 : step;
  if (next === undefined) {
    body[key] = id;
    return;
  }
  body[key] ??= next === "[]" ? [] : {};
  setAt(body[key], [next, ...rest], id);
}
