import type { ComponentChildren } from "preact";
import { send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { hasPermission } from "../../session/session.ts";
import { ConfirmButton } from "../feedback/buttons.tsx";
import { ErrorNote, WhenLoaded } from "../feedback/states.tsx";
import { toast } from "../feedback/toast.tsx";
import { Button } from "../layout/button.tsx";
import { DetailPanel } from "../layout/detail.tsx";
import { Facts, type NamedFacts } from "../layout/page.tsx";
import { ApiCall } from "../text/api-call.tsx";

/** `Answer` is the response of a redrive. */
export interface PanelSpec<Item, Answer> {
  /** Singular name: `dead letter`. */
  readonly one: string;
  readonly title: string;
  /** Permission to redrive and delete. */
  readonly permission: string;
  /** The reason of the failure, and how to fix its cause. */
  readonly reason: (item: Item) => ComponentChildren;
  readonly facts: (item: Item) => NamedFacts;
  /** Content below the facts, such as the payload. */
  readonly more: (item: Item) => ComponentChildren;
  /** Links next to the buttons. */
  readonly links?: (item: Item) => ComponentChildren;
  /** Redrives that the item permits. The last one is the primary button. */
  readonly redrives: (item: Item) => readonly { readonly verb: string; readonly body: object }[];
  readonly resultOf: (answer: Answer) => { readonly text: string; readonly isGone: boolean };
  /** Effect of a deletion. */
  readonly removal: string;
}

interface Props<Item, Answer> {
  readonly spec: PanelSpec<Item, Answer>;
  /** Path of the item in the API. */
  readonly path: string;
  /** Default: loads `path`. */
  readonly load?: (signal: AbortSignal) => Promise<Item>;
  readonly onClose: () => void;
  /** Called when the item was removed, or its reason may have changed. */
  readonly onChanged: () => void;
}

/** Detail panel of a failure: its reason, the next steps, and its payload. */
export function FailurePanel<Item, Answer>({ spec, path, load, ...events }: Props<Item, Answer>) {
  const loaded = useLoad((signal) => load?.(signal) ?? send<Item>("GET", path, { signal }), [path]);
  return (
    <DetailPanel title={spec.title} onClose={events.onClose}>
      <WhenLoaded loaded={loaded} lines={8}>
        {(item) => (
          <>
            {spec.reason(item)}
            <Actions spec={spec} path={path} item={item} {...events} />
            <Facts facts={spec.facts(item)} />
            {spec.more(item)}
            <ApiCall call={{ method: "GET", path }} />
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}

type ActionsProps<Item, Answer> = Omit<Props<Item, Answer>, "load"> & { readonly item: Item };

function Actions<Item, Answer>({ spec, path, item, onClose, onChanged }: ActionsProps<Item, Answer>) {
  const canWrite = hasPermission(spec.permission);
  const redrives = canWrite ? spec.redrives(item) : [];
  const primary = redrives.at(-1);
  const action = useAction(async (body: object) => {
    const { text, isGone } = spec.resultOf(await send<Answer>("POST", `${path}/redrive`, { body }));
    toast(text, isGone ? "ok" : "bad");
    if (isGone) onClose();
    onChanged();
  });
  return (
    <div class="stack">
      <div class="row wrap">
        {redrives.map((redrive) => (
          <Button
            key={redrive.verb}
            look={redrive === primary ? "primary" : undefined}
            disabled={action.isRunning}
            onClick={() => void action.run(redrive.body)}
          >
            {redrive.verb}
          </Button>
        ))}
        {spec.links?.(item)}
        {canWrite && (
          <ConfirmButton
            label="Delete"
            look="delete"
            title={`Delete the ${spec.one}`}
            verb="Delete"
            danger
            call={{ method: "DELETE", path }}
            done="Deleted"
            onDone={() => {
              onClose();
              onChanged();
            }}
          >
            <p>{spec.removal}</p>
          </ConfirmButton>
        )}
      </div>
      {action.error && <ErrorNote error={action.error} />}
      {primary && (
        <ApiCall
          label={`API call: ${primary.verb.toLowerCase()}`}
          call={{ method: "POST", path: `${path}/redrive`, body: primary.body }}
        />
      )}
    </div>
  );
}
