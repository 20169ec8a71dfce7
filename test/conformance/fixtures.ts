import type { OpenApi } from "../support/documented.ts";
import type { ApiOperation, IdPlace } from "./operations.ts";
import type { Answered, ApiRequest, Send } from "./requests.ts";

/** One organization's entities, each made when it is first asked for, through the API alone. */
export interface Scope {
  readonly organizationId: string;
  /** The id of an entity of that kind. */
  readonly idOf: (kind: string) => Promise<string>;
  /** Sends with the organization's own token. */
  readonly send: Send;
  /** The same; throws on anything but a success. */
  readonly call: (method: string, path: string, body?: unknown) => Promise<OpenApi>;
  /** Sends a delivery to a channel. */
  readonly deliver: (channelId: string, body: unknown) => Promise<OpenApi>;
  /** Makes a dead letter of the subscription, which takes a handler a day; answers its id. */
  readonly bury: (subscriptionId: string) => Promise<string>;
  /** Makes a problem of the organization, which takes a look at what is wrong; answers its id. */
  readonly raise: () => Promise<string>;
  /** What the scope has been answered when it made things. */
  readonly answers: readonly string[];
}

/** Where a document alone does not say how something is made. */
export interface Recipes {
  /** By kind: how an id comes about that no creating operation answers. */
  readonly ids: Readonly<Record<string, (scope: Scope) => Promise<string>>>;
  /** By operation: a body where the document's example does not do. */
  readonly bodies: Readonly<Record<string, (scope: Scope) => Promise<object>>>;
}

export interface ScopeOptions {
  readonly organizationId: string;
  readonly send: Send;
  readonly deliver: Scope["deliver"];
  readonly bury: Scope["bury"];
  readonly raise: Scope["raise"];
  /** What is there is made anew under another name; else a conflict is an error. */
  readonly rename: boolean;
}

/** A body of the operation without ids in it, and whether it fits is to be seen. */
export type BodyForm = "example" | "required" | "alone";
export const BODY_FORMS: readonly BodyForm[] = ["example", "required", "alone"];

export interface Fixtures {
  readonly open: (options: ScopeOptions) => Scope;
  /** The request with the organization's own ids wherever it names something, but for those that are given. */
  readonly request: (
    scope: Scope,
    operation: ApiOperation,
    options?: {
      readonly given?: ReadonlyMap<IdPlace, string>;
      readonly form?: BodyForm;
    },
  ) => Promise<ApiRequest>;
  /** Sends it; where something of that name is there, once more under another name. */
  readonly sendRenamed: (scope: Scope, request: ApiRequest) => Promise<Answered>;
}

/** Makes entities as the document says: by the operation that creates in the collection of their path. */
export function createFixtures(operations: readonly ApiOperation[], recipes: Recipes): Fixtures {
  let made = 0;

  const request: Fixtures["request"] = async (scope, operation, options = {}) => {
    const { given = new Map(), form = "example" } = options;
    const { method, places, bodySchema } = operation;
    const body = bodySchema && (await bodyOf(scope, operation, form));
    const query = new URLSearchParams();
    let { path } = operation;
    for (const { in: where, name, schema } of operation.parameters) {
      const isEverybodys = !places.some((one) => one.where === "path" && one.steps[0] === name);
      if (where === "path" && isEverybodys) path = path.replace(`{${name}}`, schema.examples[0]);
    }
    for (const place of places) {
      const { where, steps, kind } = place;
      const [name = ""] = steps;
      const named = given.get(place);
      if (where === "path") {
        const id = named ?? (await scope.idOf(kind));
        path = path.replace(`{${name}}`, encodeURIComponent(id));
        // What a body repeats is what the path ends with.
        if (bodySchema?.required?.includes("id") && form !== "alone") setAt(body, ["id"], id);
      } else if (named !== undefined) {
        if (where === "query") query.set(name, named);
        else setAt(body, steps, named);
      }
    }
    const search = query.size === 0 ? "" : `?${query}`;
    return { method, path: path + search, ...(body === undefined ? {} : { body }) };
  };

  async function bodyOf(scope: Scope, { id, bodySchema, bodyExample, places }: ApiOperation, form: BodyForm) {
    if (form === "alone") return {};
    const recipe = recipes.bodies[id];
    const whole = recipe ? await recipe(scope) : structuredClone(bodyExample ?? {});
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
    if (!operation) throw new Error(`no operation creates what {${kind}} names, and no recipe says how`);
    const one = await request(scope, operation);
    const { status, text } = rename ? await sendRenamed(scope, one) : await scope.send(one);
    if (status !== 200) throw new Error(`${operation.id} with ${JSON.stringify(one)}: ${status} ${text}`);
    return JSON.parse(text).id;
  }

  return {
    request,
    sendRenamed,
    open({ organizationId, send, deliver, bury, raise, rename }) {
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
        bury,
        raise,
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

/** `/apps/{appId}/channels/{channelId}` is made by `POST /apps/{appId}/channels`. */
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

/** Puts the id at that place; lists on the way hold it alone. */
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
