import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import type { Problem } from "../../kit/layout/problems.ts";

/** Formats the kind of a problem as a title: `channel_silent` gives `Channel silent`. */
export const titleOfKind = (kind: Problem["kind"]): string => {
  const words = kind.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

interface Props {
  readonly problem: Problem;
}

export function ProblemSubject({ problem: { app, channel, subscription, connection, blueprint } }: Props) {
  const inApp = app === null ? {} : { appId: app.id };
  return (
    <span class="row wrap">
      {app !== null && <MaybeLink href={viewHref("/apps", {}, { id: app.id })}>{app.uid}</MaybeLink>}
      {channel !== null && (
        <MaybeLink href={viewHref("/apps/:appId/channels", inApp, { channel: channel.uid })}>
          {channel.uid}
        </MaybeLink>
      )}
      {subscription !== null && (
        <MaybeLink href={viewHref("/apps/:appId/subscriptions", inApp, { subscription: subscription.id })}>
          {subscription.eventUid}
        </MaybeLink>
      )}
      {connection !== null && (
        <MaybeLink href={viewHref("/connections", {}, { id: connection.id })}>{connection.name}</MaybeLink>
      )}
      {blueprint !== null && (
        <MaybeLink href={viewHref("/blueprints/:blueprintId/intake", { blueprintId: blueprint.id })}>
          {blueprint.uid}
        </MaybeLink>
      )}
      {app === null && connection === null && blueprint === null && <span>the organization</span>}
    </span>
  );
}
