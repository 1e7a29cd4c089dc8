# SPDX-License-Identifier: Apache-2.0
"""opjit.onnxruntime - opjit as an execution provider of ONNX Runtime, 1.23 or later:

    options = opjit.onnxruntime.session_options(claim="all")
    session = onnxruntime.InferenceSession("model.onnx", options)
"""
import os as _os


def library_path():
    """The provider's library, for onnxruntime.register_execution_provider_library."""
    return _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "libopjit-onnxruntime.so")


def ep_name():
    """The provider's name, that of its devices' ep_name."""
    return "OpjitExecutionProvider"


def register():
    """Registers the provider, once in a process, and returns its devices."""
    import onnxruntime

    def devices():
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == ep_name()]
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise ImportError(f"onnxruntime {onnxruntime.__version__}: 1.23 or later is needed")
    if not devices():
        onnxruntime.register_execution_provider_library("opjit", library_path())
    return devices()


def session_options(options=None, **provider):
    """onnxruntime.SessionOptions with the provider added; `options` are changed, or new ones made.  Of the provider:
    claim="gain" (or "all"), level="auto" ("quick", "peak"), threads= (options.intra_op_num_threads unless said),
    cache_dir="", dims="batch=1,sequence=128", target="cpu"."""
    import onnxruntime
    devices = register()
    if options is None:
        options = onnxruntime.SessionOptions()
    provider.setdefault("threads", min(options.intra_op_num_threads, 64))
    options.add_provider_for_devices(devices, {key: str(value) for key, value in provider.items()})
    return options
