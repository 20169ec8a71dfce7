import { useList } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { CopyButton } from "../../kit/text/copy.tsx";
import { CHANNEL_TONES } from "../../kit/text/tones.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

export function AppChannels({ appId }: { readonly appId: string }) {
  if (!hasPermission("channels.read") && !hasPermission("apps.read")) return null;
  return <Channels appId={appId} />;
}

function Channels({ appId }: { readonly appId: string }) {
  const loaded = useList("/apps/{appId}/channels", { path: { appId }, query: { limit: 200 } });
  return (
    <Section title="Channels">
      <WhenLoaded loaded={loaded} lines={2}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty title="No channels" />
          ) : (
            <ul class="rows">
              {rows.map(({ uid, kind, title, state, url }) => (
                <li key={uid}>
                  <span class="rows-main">
                    <UntrustedText>{uid}</UntrustedText>{" "}
                    {title !== null && (
                      <span class="faint">
                        <UntrustedText>{title}</UntrustedText>
                      </span>
                    )}
                  </span>
                  <span class="faint">{kind}</span>
                  <Badge tone={CHANNEL_TONES[state]}>{state}</Badge>
                  {url !== null && <CopyButton text={url} what={`address of ${uid}`} />}
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </Section>
  );
}
