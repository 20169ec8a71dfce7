import type { ErrorDetail } from "../../api/api-error.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { bodySchema } from "../../kit/form/document.ts";
import { parseField, type Resolve, type Schema } from "../../kit/form/schema.ts";
import { SchemaForm } from "../../kit/form/schema-form.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { PATH_FIELDS, type PathTarget } from "./path-target.ts";

interface Props {
  readonly events: readonly unknown[];
  /** Errors of the API, with paths such as `events[0].typePath`. */
  readonly details: readonly ErrorDetail[];
  /** Number that changes when `events` are changed outside of the form. */
  readonly version: number;
  readonly onChange: (events: readonly unknown[]) => void;
  /** Called when a path gets the focus. */
  readonly onTarget: (target: PathTarget) => void;
}

/** A form for each definition, from the schema of the API. */
export function DefinitionsForm(props: Props) {
  const loaded = useLoad(loadDefinitionSchema, []);
  return <WhenLoaded loaded={loaded}>{(ready) => <Forms {...props} {...ready} />}</WhenLoaded>;
}

interface DefinitionSchema {
  readonly schema: Schema;
  readonly resolve: Resolve;
}

async function loadDefinitionSchema(): Promise<DefinitionSchema> {
  const { schema, resolve } = await bodySchema("put", "/apps/{appId}/channels/{channelId}");
  const field = parseField(schema, resolve);
  const properties = field.is === "object" ? field.properties : [];
  const events = properties.find(({ name }) => name === "events");
  const list = events && parseField(events.schema, resolve);
  if (list?.is !== "list") throw new Error("The API document describes no definitions.");
  return { schema: list.items, resolve };
}

/** Settings that are shown without expanding the others. */
const FIRST = ["type", "typePath", "idPath", "payloadPath", "when"];

function Forms({ events, details, version, onChange, onTarget, schema, resolve }: Props & DefinitionSchema) {
  return (
    <div class="stack">
      {events.map((definition, index) => {
        const own = ofDefinition(details, index);
        return (
          <details
            key={`${version}/${index}`}
            class="definition-form"
            open={events.length <= 3 || own.length > 0}
          >
            <summary>
              <strong>
                <UntrustedText max={255}>{typeOf(definition) || "new definition"}</UntrustedText>
              </strong>
              {own.length > 0 && <Badge tone="bad">invalid</Badge>}
            </summary>
            <div
              class="stack"
              onFocusIn={({ target }) => {
                const field = PATH_FIELDS.find(
                  (one) => target instanceof HTMLElement && target.dataset.path === one,
                );
                if (field) onTarget({ index, field });
              }}
            >
              <SchemaForm
                schema={schema}
                resolve={resolve}
                value={definition}
                first={FIRST}
                details={own}
                onChange={(changed) => onChange(events.with(index, changed))}
              />
              <div>
                <Button onClick={() => onChange(events.toSpliced(index, 1))}>Remove this definition</Button>
              </div>
            </div>
          </details>
        );
      })}
      <div>
        <Button onClick={() => onChange([...events, { type: "" }])}>Add a definition</Button>
      </div>
    </div>
  );
}

/** Returns the errors of one definition, with paths relative to it. */
function ofDefinition(details: readonly ErrorDetail[], index: number): readonly ErrorDetail[] {
  const start = `events[${index}]`;
  return details
    .filter(({ path }) => path === start || path.startsWith(`${start}.`))
    .map(({ path, message }) => ({ path: path.slice(start.length + 1), message }));
}

const typeOf = (definition: unknown): string =>
  typeof definition === "object" && definition !== null && "type" in definition
    ? String(definition.type)
    : "";
