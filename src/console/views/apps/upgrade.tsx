import { ConfirmButton } from "../../kit/feedback/buttons.tsx";
import { hasPermission } from "../../session/session.ts";

interface Props {
  readonly appId: string;
  readonly name: string;
  readonly onDone: () => void;
}

/** Button that upgrades an app to the current version of its blueprint. */
export const Upgrade = ({ appId, name, onDone }: Props) =>
  hasPermission("apps.write") && (
    <ConfirmButton
      label="Upgrade"
      title={`Upgrade ${name}?`}
      verb="Upgrade"
      call={{ method: "POST", path: `/apps/${appId}/upgrade`, body: {} }}
      done={`Upgraded: ${name}`}
      onDone={onDone}
    >
      <p>
        Its channels are updated from the blueprint. Channels with the same uid keep their ids and addresses.
        Channels that the blueprint no longer has are deleted.
      </p>
    </ConfirmButton>
  );
