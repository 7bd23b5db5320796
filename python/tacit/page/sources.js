// Where inputs come from besides drawings: files, the clipboard, the camera, numbers.

import { pixelsOf } from "./client/pictures.js";
import { one } from "./dom.js";

/** Watches the panel of pictures; `changed` is called with RGBA pixels, `failed` with an error. */
export function picture(changed, failed) {
  const drop = one("drop");
  let pixels = null;

  const tell = () => pixels && changed(one("invert").checked ? inverted(pixels) : pixels);

  async function take(file) {
    if (!file) return;
    try {
      pixels = await pixelsOf(file);
      one("file-name").textContent = `${file.name || "a pasted picture"}, ${pixels.width} × ${pixels.height} pixels`;
      tell();
    } catch (error) {
      failed(error);
    }
  }

  one("invert").addEventListener("change", tell);
  one("file").addEventListener("change", (event) => take(event.target.files[0]));
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find(({ type }) => type.startsWith("image/"));
    if (file && drop.offsetParent !== null) take(file);
  });
  // A picture that misses its place must not take the page's.
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
}

function inverted({ data, width, height }) {
  return { data: data.map((value, at) => (at % 4 === 3 ? value : 255 - value)), width, height };
}

/** Watches the panel of the camera; gives `off()`. */
export function camera(changed, failed) {
  const [video, switched, shoot, said] = ["video", "camera-on", "shoot", "camera-said"].map(one);
  let stream = null;

  function off() {
    stream?.getTracks().forEach((track) => track.stop());
    stream = null;
    video.srcObject = null;
    video.hidden = true;
    shoot.disabled = true;
    switched.textContent = "Turn the camera on";
  }

  switched.addEventListener("click", async () => {
    if (stream) return off();
    try {
      if (!navigator.mediaDevices) throw new Error("this browser gives pages no camera");
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
      video.srcObject = stream;
      video.hidden = false;
      await video.play();
      shoot.disabled = false;
      switched.textContent = "Turn the camera off";
      said.textContent = "The camera is on.";
    } catch (error) {
      off();
      failed(new Error(`there is no picture of the camera: ${error.message}`));
    }
  });
  shoot.addEventListener("click", async () => {
    try {
      const bitmap = await createImageBitmap(video);
      changed(await pixelsOf(bitmap));
      bitmap.close();
      said.textContent = "The picture was taken; it is ready to ask about.";
    } catch (error) {
      failed(error);
    }
  });
  return { off };
}

/** Watches the panel of numbers; `changed` is called with a Float32Array of `count()` numbers. */
export function numbers(count, changed, failed) {
  one("numbers").addEventListener("input", ({ target }) => {
    const words = target.value.split(/[\s,;]+/).filter(Boolean);
    const values = Float32Array.from(words, Number);
    if (!values.every(Number.isFinite)) failed(new Error(`\`${words.find((word) => !Number.isFinite(Number(word)))}\` is no number`));
    else if (values.length !== count()) failed(new Error(`the model takes ${count()} numbers; there are ${values.length}`));
    else changed(values);
  });
}
