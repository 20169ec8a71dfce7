import type { Schemas } from "../../api/client.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { Payload } from "../../kit/text/payload.tsx";
import { Stranger } from "../../kit/text/stranger.tsx";

type Item = Schemas["ExplainedItem"];

/** What each item becomes, and what each path of each definition yields on the way. */
export const Explained = ({ items }: { readonly items: readonly Item[] }) => (
  <div class="stack">
    {items.map((item, index) => (
      <One key={index} item={item} />
    ))}
  </div>
);

function One({ item: { item, events, failures, definitions, closest } }: { readonly item: Item }) {
  return (
    <div class="stack explained">
      {item !== null && item > 0 && <h3>Item {item + 1}</h3>}
      {events.map(({ id, type, data }) => (
        <div key={type} class="stack">
          <p class="row wrap">
            <Badge tone="ok">event</Badge> <Stranger>{type}</Stranger>
            <span class="faint">
              id <Stranger>{id}</Stranger>
            </span>
          </p>
          {data !== null && <Payload content={data} label={`data of ${type}`} fileName="data.json" />}
        </div>
      ))}
      {failures.map(({ reason, path, detail, definitions: failed }) => (
        <p key={reason + failed.join()} class="note warn">
          <span class="row wrap">
            <code>{reason}</code> {path !== null && <code>{path}</code>}
          </span>
          <Stranger>{detail}</Stranger>
          {closest !== null && (
            <span>
              Closest: <Stranger>{closest}</Stranger>
            </span>
          )}
        </p>
      ))}
      {definitions.map(({ type, matches, typePath, idPath, payloadPath }) => (
        <dl key={type} class="paths">
          <div>
            <dt>
              <Stranger>{type}</Stranger>
            </dt>
            <dd>{matches ? "matches" : "does not match"}</dd>
          </div>
          {(
            [
              ["typePath", typePath],
              ["idPath", idPath],
              ["payloadPath", payloadPath],
            ] as const
          ).flatMap(([name, path]) =>
            path === null
              ? []
              : [
                  <div key={name}>
                    <dt>
                      {name} <code>{path.path}</code>
                    </dt>
                    <dd>
                      {path.values.length === 0 ? (
                        <span class="faint">yields nothing</span>
                      ) : (
                        <Stranger max={200}>{path.values.join(", ")}</Stranger>
                      )}
                    </dd>
                  </div>,
                ],
          )}
        </dl>
      ))}
    </div>
  );
}
