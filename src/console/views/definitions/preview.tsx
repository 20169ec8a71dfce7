import { useEffect, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "../../api/api-error.ts";
import { api, type Schemas, send } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { ExplainedItems } from "../../kit/explained/explained-items.tsx";
import { Empty, ErrorNote, Loading } from "../../kit/feedback/states.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

type Preview = Schemas["DeliveriesPreview"];
type Explanation = Schemas["Explanation"];

interface Props {
  readonly appId: string;
  readonly channel: Schemas["Channel"];
  /** `undefined` while the typed text is invalid. */
  readonly events: readonly unknown[] | undefined;
}

const SOURCES = ["newest deliveries", "provider's sample", "pasted body"] as const;
type Source = (typeof SOURCES)[number];

const TYPING_MS = 450;

/** Shows what event definitions produce from the newest deliveries, the provider's sample or a pasted body. */
export function TryOn({ appId, channel, events }: Props) {
  const [source, setSource] = useState<Source>("newest deliveries");
  const [pasted, setPasted] = useState("");
  const preset = hasPermission("presets.read") ? presetOf(channel.config) : undefined;
  const sample = useLoad(
    async (signal) =>
      preset === undefined
        ? undefined
        : (await api.get("/presets/{name}", { path: { name: preset }, signal })).sample,
    [preset],
  );
  const given = source === "pasted body" ? { headers: {}, body: pasted } : sample.data;
  const shown = SOURCES.filter((one) => one !== "provider's sample" || preset !== undefined);
  return (
    <section class="stack" aria-label="Preview">
      <div class="segments" role="group" aria-label="Preview input">
        {shown.map((one) => (
          <button key={one} type="button" aria-pressed={one === source} onClick={() => setSource(one)}>
            {one}
          </button>
        ))}
      </div>
      {source === "pasted body" && (
        <label class="field">
          <span class="field-name">Body of a delivery</span>
          <textarea
            rows={6}
            spellcheck={false}
            value={pasted}
            onInput={(event) => setPasted(event.currentTarget.value)}
          />
        </label>
      )}
      {source === "newest deliveries" ? (
        <OnNewest appId={appId} channelUid={channel.uid} events={events} />
      ) : (
        given && <OnOne appId={appId} channelUid={channel.uid} events={events} given={given} />
      )}
    </section>
  );
}

const presetOf = (config: object): string | undefined => {
  const { preset } = config as { readonly preset?: unknown };
  return typeof preset === "string" ? preset : undefined;
};

interface Tried<T> {
  readonly result: T | undefined;
  readonly error: ApiError | undefined;
}

/** Hook that requests a preview after the user stops typing. A new request cancels the previous one. */
function useTried<T>(path: string, body: object | undefined): Tried<T> {
  const [tried, setTried] = useState<Tried<T>>({ result: undefined, error: undefined });
  const key = JSON.stringify(body);
  useEffect(() => {
    if (body === undefined) return undefined;
    const aborting = new AbortController();
    const timer = setTimeout(() => {
      send<T>("POST", path, { body, signal: aborting.signal }).then(
        (result) => setTried({ result, error: undefined }),
        (error: unknown) => {
          if (!isAbort(error)) setTried(({ result }) => ({ result, error: toApiError(error) }));
        },
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      aborting.abort();
    };
  }, [path, key]);
  return tried;
}

interface OnProps {
  readonly appId: string;
  readonly channelUid: string;
  readonly events: readonly unknown[] | undefined;
}

function OnNewest({ appId, channelUid, events }: OnProps) {
  const body = events && { channelId: channelUid, events };
  const { result, error } = useTried<Preview>(`/apps/${appId}/deliveries/preview`, body);
  if (error) return <ErrorNote error={error} />;
  if (result === undefined) return <Loading lines={4} />;
  if (result.examined === 0) {
    return (
      <Empty title="No recorded delivery has a body">
        <p>
          Records of each channel's newest deliveries are stored for a day, with bodies up to 128 KiB. Use the
          sample, or paste a body.
        </p>
      </Empty>
    );
  }
  const changed = result.items.filter(({ isChanged }) => isChanged);
  return (
    <div class="stack" role="status">
      <p>
        Compared with the newest {formatCount(result.examined)} deliveries,{" "}
        {changed.length === 0
          ? "all would have the same result."
          : `${formatCount(changed.length)} would have a different result.`}
      </p>
      <Counts title="Events" counts={result.events} tone="ok" />
      <Counts title="Failures" counts={result.failures} tone="warn" />
      {[...changed, ...result.items.filter(({ isChanged }) => !isChanged)]
        .slice(0, 10)
        .map(({ id, isChanged, explanation }) => (
          <details key={id} class="tried">
            <summary>
              <code>{id}</code> {isChanged && <Badge tone="info">changed</Badge>}
            </summary>
            <ExplainedItems items={explanation} />
          </details>
        ))}
    </div>
  );
}

interface CountsProps {
  readonly title: string;
  readonly counts: Preview["events"];
  readonly tone: "ok" | "warn";
}

function Counts({ title, counts, tone }: CountsProps) {
  if (counts.length === 0) return null;
  return (
    <table class="counts">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col">then</th>
          <th scope="col">now</th>
        </tr>
      </thead>
      <tbody>
        {counts.map(({ name, before, after }) => (
          <tr key={name}>
            <th scope="row">
              <UntrustedText max={200}>{name}</UntrustedText>
            </th>
            <td>{formatCount(before)}</td>
            <td>{before === after ? formatCount(after) : <Badge tone={tone}>{formatCount(after)}</Badge>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function OnOne({
  appId,
  channelUid,
  events,
  given,
}: OnProps & { readonly given: { readonly headers: object; readonly body: string } }) {
  const { headers, body: text } = given;
  const body = events && { headers, body: text, verify: false, events };
  const path = `/apps/${appId}/channels/${channelUid}/explain`;
  const { result, error } = useTried<Explanation>(path, body);
  if (error) return <ErrorNote error={error} />;
  if (result === undefined) return <Loading lines={4} />;
  return (
    <div role="status">
      <ExplainedItems items={result.items} />
    </div>
  );
}
