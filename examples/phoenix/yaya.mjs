// Parts that a JavaScript program needs, besides the npm package phoenix, to be a device
// of yaya: enrolment, and a transport that authenticates before the Socket is told
// that it is open. It needs WebSocket and WebCrypto with Ed25519 (browsers, Node 22 and
// later) and no package.
if (!globalThis.WebSocket) throw new Error("this needs WebSocket, which Node has from version 22 on");

const text = new TextEncoder();
const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));
const unbase64 = (s) => Uint8Array.from(atob(s), (c) => c.charCodeAt(0));

// fields takes a record apart: each field stands behind its length in 4 bytes.
function fields(record) {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  const out = [];
  for (let at = 0; at < record.length; ) {
    const length = view.getUint32(at);
    out.push(record.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return out;
}

/** Makes a key that cannot be read, and enrols it by a code of `yaya device invite`. */
export async function enrol(url, { code, deviceId, label }) {
  const key = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  const publicKey = base64(await crypto.subtle.exportKey("raw", key.publicKey));
  const res = await fetch(`${url}/auth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ public_key: publicKey, device_id: deviceId, label, code }),
  });
  if (res.status !== 200) throw new Error(`register: ${res.status} ${await res.text()}`);
  const { device_token: token, server_id: serverId } = await res.json();
  return { url, deviceId, serverId, token, key };
}

/**
 * The answer to a challenge. It refuses one that is for another server, or for
 * another URL than the one that was dialled.
 */
export async function answer(device, dialled, challenge) {
  const record = unbase64(challenge);
  const [context, server, audience] = fields(record).map((f) => new TextDecoder().decode(f));
  const url = new URL(dialled);
  if (context !== "yaya-device-auth-v1" || server !== device.serverId || audience !== `${url.protocol}//${url.host}${url.pathname}`)
    throw new Error("the challenge is not for this connection");
  const sig = await crypto.subtle.sign("Ed25519", device.key.privateKey, record);
  return { type: "auth", device_token: device.token, challenge_sig: base64(sig) };
}

/** A transport for `new Socket(url, { transport })`: a WebSocket that has proved who it is. */
export function transport(device, WebSocketImpl = globalThis.WebSocket) {
  return class {
    constructor(url) {
      this.url = url;
      this.readyState = 0;
      this.onopen = this.onerror = this.onmessage = this.onclose = () => {};
      this.ws = new WebSocketImpl(url);
      this.ws.onerror = (e) => this.onerror(e);
      this.ws.onclose = (e) => {
        this.readyState = 3;
        this.onclose(e);
      };
      this.ws.onmessage = (e) => this.handshake(JSON.parse(e.data));
    }
    async handshake(frame) {
      if (frame.type === "auth_challenge") {
        try {
          this.ws.send(JSON.stringify(await answer(device, this.url, frame.challenge)));
        } catch (e) {
          this.onerror(e);
          this.ws.close();
        }
      } else if (frame.type === "auth_ok") {
        this.sessionId = frame.session_id;
        this.readyState = 1;
        this.ws.onmessage = (e) => this.onmessage(e);
        this.onopen();
      } else {
        this.onerror(new Error(frame.reason)); // the server closes with 4401
      }
    }
    get bufferedAmount() {
      return this.ws.bufferedAmount;
    }
    send(data) {
      this.ws.send(data);
    }
    close(code, reason) {
      this.ws.close(code, reason);
    }
  };
}

/** Calls a method of POST /rpc. */
export async function rpc(device, method, params) {
  const res = await fetch(`${device.url}/rpc`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${device.token}` },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await res.json();
  if (error) throw new Error(`${method}: ${error.message} (${error.code})`);
  return result;
}

export { base64, unbase64, text };
