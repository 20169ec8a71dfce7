import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://www.typeform.com/developers/webhooks/. The caller chooses the id of a webhook, its tag. */
export const startTypeform = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createTypeform);

interface TypeformHook extends Hook {
  readonly events: readonly string[];
  readonly form: string;
  readonly isEnabled: boolean;
  readonly createdAtMs: number;
}

const saveSchema = z.object({
  url: z.url(),
  enabled: z.boolean().default(false),
  secret: z.string().optional(),
  verify_ssl: z.boolean().default(true),
  event_types: z.record(z.string(), z.boolean()).default({ form_response: true }),
});

function createTypeform(context: ProviderContext<TypeformHook>): Provider<TypeformHook> {
  const { hooks } = context;
  const find = ({ params: { form, tag } }: Call): TypeformHook | undefined =>
    hooks.list().find((hook) => hook.form === form && hook.id === tag);

  function save(call: Call): Answer {
    const { form = "", tag = "" } = call.params;
    const body = call.read(saveSchema);
    if (body === undefined) return error(400, "VALIDATION_ERROR", "Error validating data: url is required");
    const before = find(call);
    if (before === undefined && hooks.list().length >= context.quota()) {
      return error(400, "LIMIT_REACHED", `A form can have at most ${context.quota()} webhooks`);
    }
    const hook = hooks.put({
      id: tag,
      address: body.url,
      secret: body.secret,
      events: Object.keys(body.event_types).filter((name) => body.event_types[name]),
      form,
      isEnabled: body.enabled,
      createdAtMs: before?.createdAtMs ?? context.nowMs(),
    });
    return { status: 200, body: view(hook) };
  }

  const withFound = (handle: (hook: TypeformHook) => Answer) => (call: Call) => {
    const hook = find(call);
    return hook === undefined ? NOT_FOUND : handle(hook);
  };

  const single = "/forms/:form/webhooks/:tag";
  return {
    unauthorized: error(401, "AUTHENTICATION_FAILED", "Authentication credentials not found or invalid"),
    forbidden: error(403, "FORBIDDEN", "Token does not have access to required permissions: webhooks:write"),
    notFound: NOT_FOUND,
    routes: [
      { step: (call) => (find(call) === undefined ? "create" : "update"), on: `PUT ${single}`, handle: save },
      {
        step: "list",
        on: "GET /forms/:form/webhooks",
        handle: ({ params: { form } }) => ({
          status: 200,
          body: {
            items: hooks
              .list()
              .filter((hook) => hook.form === form)
              .map(view),
          },
        }),
      },
      {
        step: "check",
        on: `GET ${single}`,
        handle: withFound((hook) => ({ status: 200, body: view(hook) })),
      },
      {
        step: "remove",
        on: `DELETE ${single}`,
        handle: withFound(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ],
    makeForeign: (address) => ({
      id: `another-${context.nextNumber()}`,
      address,
      secret: "secret of another program",
      events: ["form_response"],
      form: "abc123",
      isEnabled: true,
      createdAtMs: context.nowMs(),
    }),
    receives: ({ isEnabled, events }, event) => isEnabled && (event === undefined || events.includes(event)),
    sign: build,
  };
}

function build({ secret, form }: TypeformHook, { id, payload, event, nowMs }: Message): Outgoing {
  const answers = payload ?? { answers: [] };
  const body = JSON.stringify({
    event_id: id,
    event_type: event ?? "form_response",
    form_response: { form_id: form, token: id, submitted_at: new Date(nowMs).toISOString(), ...answers },
  });
  return {
    headers: {
      "content-type": "application/json",
      ...(secret && { "typeform-signature": `sha256=${sign(body, secret, { encoding: "base64" })}` }),
    },
    body,
  };
}

const view = ({ id, address, events, form, isEnabled, createdAtMs }: TypeformHook): object => ({
  id: `01${form}${id}`,
  form_id: form,
  tag: id,
  url: address,
  enabled: isEnabled,
  verify_ssl: true,
  event_types: Object.fromEntries(events.map((event) => [event, true])),
  created_at: new Date(createdAtMs).toISOString(),
  updated_at: new Date(createdAtMs).toISOString(),
});

const error = (status: number, code: string, description: string): Answer => ({
  status,
  body: { code, description },
});

const NOT_FOUND = error(404, "NOT_FOUND", "webhook not found");
