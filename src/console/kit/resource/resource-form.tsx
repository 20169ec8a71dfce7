import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Dialog } from "../feedback/dialog.tsx";
import { WhenLoaded } from "../feedback/states.tsx";
import { type BodySchema, bodySchema, variantSchema } from "../form/document.ts";
import { Form, FormFoot } from "../form/form.tsx";
import type { Choices } from "../form/inputs.tsx";
import { isRecord, parseField } from "../form/schema.ts";
import { SchemaForm } from "../form/schema-form.tsx";
import { mergePatch } from "./merge-patch.ts";

interface Props {
  readonly title: string;
  readonly method: "post" | "put";
  /** Path in the OpenAPI document: `/iam/api-keys/{apiKeyId}`. */
  readonly operation: string;
  /** Request path with its parameters filled in. */
  readonly path: string;
  /** Label of the button: `Create`. */
  readonly verb: string;
  /** Entity to change. The form shows only the fields that the API operation accepts. */
  readonly entity?: Readonly<Record<string, unknown>>;
  /** Operation that creates entities of this kind. Needed if the schema for changes does not depend on the kind. */
  readonly createdBy?: { readonly operation: string; readonly kind: string } | undefined;
  /** Initial values of the form when it creates an entity. */
  readonly start?: Readonly<Record<string, unknown>>;
  /** `ETag` of the entity. The API rejects the change if the entity was changed after this version. */
  readonly etag?: string | undefined;
  readonly without?: readonly string[];
  readonly first?: readonly string[];
  /** Help above the fields, which depends on the values in the form. */
  readonly hint?: ((value: Readonly<Record<string, unknown>>) => ComponentChildren) | undefined;
  /** Loads the allowed values of fields. Called when the form opens. */
  readonly choices?: (signal: AbortSignal) => Promise<Choices>;
  readonly onDone: (answer: unknown) => void;
  readonly onClose: () => void;
}

/** Dialog that creates or changes an entity. Its form is generated from the schema of the API operation. */
export function ResourceForm(props: Props) {
  const { title, method, operation, createdBy, choices, onClose } = props;
  const loaded = useLoad(
    async (signal) => ({
      body: createdBy
        ? await variantSchema(createdBy.operation, createdBy.kind)
        : await bodySchema(method, operation),
      choices: choices ? await choices(signal) : {},
    }),
    [method, operation],
  );
  return (
    <Dialog title={title} onClose={onClose} wide>
      <WhenLoaded loaded={loaded}>
        {(ready) => <Fields {...props} body={ready.body} known={ready.choices} />}
      </WhenLoaded>
    </Dialog>
  );
}

function Fields(props: Props & { readonly body: BodySchema; readonly known: Choices }) {
  const {
    method,
    path,
    verb,
    entity,
    start = {},
    etag,
    without = [],
    first = [],
    body,
    known,
    hint,
    onDone,
    onClose,
  } = props;
  const before = useMemo(
    () => (entity === undefined ? undefined : pickAcceptedFields(entity, body)),
    [entity, body],
  );
  const [value, setValue] = useState<Readonly<Record<string, unknown>>>(before ?? start);
  // Kept while the dialog is open. If a response is lost, a retry with the same key cannot create a second entity.
  const [idempotencyKey] = useState(() =>
    [...crypto.getRandomValues(new Uint8Array(16))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join(""),
  );
  const sent = before === undefined ? value : mergePatch(before, value);
  const headers: Record<string, string> = etag === undefined ? {} : { "If-Match": etag };
  const action = useAction(async () => {
    const answer = await send(method.toUpperCase(), path, {
      body: sent,
      headers: method === "post" ? { "Idempotency-Key": `${idempotencyKey}-${computeHash(sent)}` } : headers,
    });
    onDone(answer);
  });
  const isSame = before !== undefined && Object.keys(sent).length === 0;
  return (
    <Form onSubmit={action.run}>
      {hint?.(value)}
      <SchemaForm
        schema={body.schema}
        resolve={body.resolve}
        value={value}
        onChange={(next) => setValue(isRecord(next) ? next : {})}
        details={action.error?.details ?? []}
        without={without}
        choices={known}
        first={first}
        isChange={entity !== undefined}
      />
      <FormFoot
        action={action}
        call={{ method, path, body: withoutSecrets(sent), headers }}
        verb={verb}
        isReady={!isSame}
        onCancel={onClose}
      />
    </Form>
  );
}

/** Returns the entity's fields that the API operation accepts. Omits null values. */
function pickAcceptedFields(
  entity: Readonly<Record<string, unknown>>,
  { schema, resolve }: BodySchema,
): Readonly<Record<string, unknown>> {
  const field = parseField(schema, resolve);
  const variants =
    field.is === "variants" ? field.variants.map((one) => parseField(one.schema, resolve)) : [field];
  const names = new Set(
    variants.flatMap((one) => (one.is === "object" ? one.properties.map(({ name }) => name) : [])),
  );
  return Object.fromEntries(
    Object.entries(entity).filter(([name, value]) => names.has(name) && value !== null),
  );
}

/** Hash of the request body for the idempotency key, because an edited form is a new request. */
function computeHash(value: unknown): string {
  let hash = 0;
  for (const character of JSON.stringify(value))
    hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return (hash >>> 0).toString(36);
}

const SECRET = /secret|password|token|^value$|^key$/i;

/** Replaces secrets in the shown curl command with `…`, because the command may be copied or seen by others. */
function withoutSecrets(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutSecrets(one, name));
  if (isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutSecrets(one, key)]));
  return typeof value === "string" && SECRET.test(name) ? "…" : value;
}
