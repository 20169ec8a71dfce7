import type { Schemas } from "../../api/client.ts";
import { Badge } from "../layout/page.tsx";
import { UntrustedCode, UntrustedText } from "../text/untrusted-text.tsx";
import { describeReason } from "./reasons.ts";
import "./explained.css";

type Explained = Schemas["ExplainedItem"];
type Definition = Explained["definitions"][number];

interface Props {
  /** Items of a delivery, with an explanation of how they were processed. Items explained on arrival have no `events`. */
  readonly items: readonly (Omit<Explained, "events"> & Partial<Pick<Explained, "events">>)[];
}

/** Shows how each item of a delivery was processed: the values at each definition's paths, the failures and the events. */
export function ExplainedItems({ items }: Props) {
  return (
    <ol class="explained">
      {items.map(({ item, definitions, failures, events = [], closest }) => (
        <li key={item ?? "whole"} class="explained-item">
          {(items.length > 1 || item !== null) && (
            <h3>{item === null ? "The whole delivery" : `Item ${item}`}</h3>
          )}
          {failures.map(({ reason, path, detail }) => (
            <p key={`${reason}${path}${detail}`} class="explained-event">
              <Badge tone="warn">{reason}</Badge>
              {path !== null && <UntrustedCode max={300}>{path}</UntrustedCode>}
              <UntrustedText max={600}>{detail}</UntrustedText>
            </p>
          ))}
          {closest !== null && (
            <p>
              Closest definition:{" "}
              <strong>
                <UntrustedText>{closest}</UntrustedText>
              </strong>
            </p>
          )}
          {events.map(({ id, type, status, data }) => (
            <div key={`${type}/${id}`} class="explained-event">
              <Badge tone={status === "new" ? "ok" : status === "duplicate" ? "plain" : "bad"}>
                {status}
              </Badge>
              <strong>
                <UntrustedText max={255}>{type}</UntrustedText>
              </strong>
              <UntrustedCode max={128}>{id}</UntrustedCode>
              {data !== null && (
                <UntrustedCode class="explained-data soft" max={200}>
                  {data}
                </UntrustedCode>
              )}
            </div>
          ))}
          {definitions.map((definition) => (
            <OneDefinition
              key={definition.type}
              definition={definition}
              isOpen={definition.matches || definition.failure !== null || definition.type === closest}
            />
          ))}
        </li>
      ))}
    </ol>
  );
}

interface FailureProps {
  readonly reason: string;
  readonly path: string | null;
  readonly detail: string;
}

/** Shows the reason why processing an item failed, the path, and a suggested fix. */
export function Failure({ reason, path, detail }: FailureProps) {
  const { description, suggestedAction } = describeReason(reason);
  return (
    <div class="note warn">
      <p>
        <code>{reason}</code> {description}
      </p>
      {detail !== "" && (
        <p class="note-detail">
          {path !== null && (
            <>
              <UntrustedCode max={300}>{path}</UntrustedCode>{" "}
            </>
          )}
          <UntrustedText max={600}>{detail}</UntrustedText>
        </p>
      )}
      <p class="note-detail">{suggestedAction}</p>
    </div>
  );
}

interface DefinitionProps {
  readonly definition: Definition;
  readonly isOpen: boolean;
}

function OneDefinition({ definition, isOpen }: DefinitionProps) {
  const { type, matches, typePath, idPath, payloadPath, failure, ignored } = definition;
  const paths = [
    ["typePath", typePath],
    ["idPath", idPath],
    ["payloadPath", payloadPath],
  ] as const;
  return (
    <details class="definition" open={isOpen}>
      <summary>
        <UntrustedText max={255}>{type}</UntrustedText>
        <Badge tone={failure !== null ? "warn" : matches && ignored === null ? "ok" : "plain"}>
          {failure?.reason ?? (ignored !== null ? "ignored" : matches ? "matches" : "no match")}
        </Badge>
      </summary>
      <dl class="facts yields">
        {ignored !== null && (
          <div>
            <dt>when</dt>
            <dd>
              <UntrustedCode max={200}>{ignored.path}</UntrustedCode>
              <UntrustedText max={600}>{ignored.detail}</UntrustedText>
            </dd>
          </div>
        )}
        {paths.map(([name, found]) => (
          <div key={name}>
            <dt>{name}</dt>
            {found === null ? (
              <dd class="faint">not set</dd>
            ) : (
              <dd>
                <FoundValues found={found} />
              </dd>
            )}
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Shows a path with the values that it selects in an item. */
export function FoundValues({ found }: { readonly found: Schemas["RoutedItem"]["paths"][number] }) {
  const { path, values, isCut } = found;
  return (
    <>
      <UntrustedCode max={200}>{path}</UntrustedCode>
      <span class="faint">→</span>
      {values.length === 0 ? (
        <span class="faint">no value</span>
      ) : (
        values.map((value, index) => (
          <UntrustedCode key={index} class="yielded" max={200}>
            {value}
          </UntrustedCode>
        ))
      )}
      {isCut && <span class="faint">and more</span>}
    </>
  );
}
