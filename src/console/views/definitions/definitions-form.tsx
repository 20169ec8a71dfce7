import type { ErrorDetail } from "../../api/api-error.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { bodySchema } from "../../kit/form/document.ts";
import { ErrorFold } from "../../kit/form/error-fold.tsx";
import { isRecord, parseField, type Resolve, type Schema } from "../../kit/form/schema.ts";
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
  /** Whether the channel has a preset, whose paths a definition can turn off. */
  readonly hasPreset: boolean;
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

/** Settings that `null` turns off, so that the preset's path is not used. */
const NULLABLE = ["typePath", "idPath"];

function Forms(props: Props & DefinitionSchema) {
  const { events, details, version, hasPreset, onChange, onTarget, schema, resolve } = props;
  return (
    <div class="stack">
      {events.map((definition, index) => {
        const own = ofDefinition(details, index);
        return (
          <ErrorFold
            key={`${version}/${index}`}
            class="definition-form"
            summary={
              <>
                <strong>
                  <UntrustedText max={255}>{typeOf(definition) || "new definition"}</UntrustedText>
                </strong>
                {own.length > 0 && <Badge tone="bad">invalid</Badge>}
              </>
            }
            hasError={own.length > 0}
            isOpen={events.length <= 3}
          >
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
                nullable={NULLABLE.filter((name) => hasPreset || isOff(definition, name))}
                details={own}
                onChange={(changed) => onChange(events.with(index, changed))}
              />
              <div>
                <Button onClick={() => onChange(events.toSpliced(index, 1))}>Remove this definition</Button>
              </div>
            </div>
          </ErrorFold>
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

const isOff = (definition: unknown, name: string): boolean =>
  isRecord(definition) && definition[name] === null;

const typeOf = (definition: unknown): string => (isRecord(definition) ? String(definition.type ?? "") : "");
